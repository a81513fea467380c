package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// harmless reports whether a terminal shows r as one plain character. What is left
// out moves the cursor, reorders the line or is invisible: control characters,
// bidi and other format characters, odd spaces, code points without a meaning.
func harmless(r rune) bool { return unicode.IsPrint(r) }

// escape makes a text out of the file safe to print on one line: a control byte or
// a byte that is no UTF-8 becomes \x1b, any other harmful character \u202e. A
// backslash stays as it is; JSON output is the exact one.
func escape(s string) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || !harmless(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case harmless(r):
			b.WriteString(s[i : i+size])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

// escapeLines escapes each line of a text and indents all but the first.
func escapeLines(s, indent string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = escape(line)
	}
	return strings.Join(lines, "\n"+indent)
}

// cell is a text in a table: escaped, at most width characters.
func cell(s string, width int) string {
	n := 0
	s = escape(s)
	for i := range s {
		if n == width-1 && utf8.RuneCountInString(s[i:]) > 1 {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// firstLine is a text of several lines in a table.
func firstLine(s string, width int) string {
	line, rest, _ := strings.Cut(strings.TrimRight(s, "\n"), "\n")
	if rest != "" {
		return cell(line, width-2) + " …"
	}
	return cell(line, width)
}

// clip cuts a text to at most n bytes, at the start of a character.
func clip(s string, n int) (cut string, whole bool) {
	if len(s) <= n {
		return s, true
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], false
}
