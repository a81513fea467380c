package main

import (
	"strings"
	"unicode/utf8"

	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// escapeLines escapes each line of a text and indents all but the first.
func escapeLines(s, indent string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = plain.Text(line)
	}
	return strings.Join(lines, "\n"+indent)
}

// cell returns a text for a table: escaped, at most width characters.
func cell(s string, width int) string {
	n := 0
	s = plain.Text(s)
	for i := range s {
		if n == width-1 && utf8.RuneCountInString(s[i:]) > 1 {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// firstLine returns the first of several lines for a table.
func firstLine(s string, width int) string {
	line, rest, _ := strings.Cut(strings.TrimRight(s, "\n"), "\n")
	if rest != "" {
		return cell(line, width-2) + " …"
	}
	return cell(line, width)
}

// truncate cuts a text to at most n bytes, at the start of a character.
func truncate(s string, n int) (cut string, whole bool) {
	if len(s) <= n {
		return s, true
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], false
}
