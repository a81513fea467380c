// Package plain writes what people read on a terminal: texts from a file, sizes, and durations.
package plain

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Harmless reports whether a terminal shows r as one plain character. Other characters move the
// cursor, reorder the line or are invisible: control characters, bidi and other format
// characters, unusual spaces, unassigned code points.
func Harmless(r rune) bool { return unicode.IsPrint(r) }

// Text makes a text from a file safe to print on one line: a control byte or a byte that is not
// UTF-8 becomes \x1b, any other harmful character \u202e. A backslash stays unchanged, so only
// JSON output is exact.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !Harmless(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case Harmless(r):
			b.WriteRune(r)
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

// Span writes a duration in at most two units: 12s, 4m02s, 3h, 2d.
func Span(d time.Duration) string {
	d = d.Abs()
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// Size writes a number of bytes: 12 B, 3.4 KiB, 12.4 MiB.
func Size[N int | int64 | float64](n N) string {
	if n < 1<<10 {
		return fmt.Sprintf("%.0f B", float64(n))
	}
	size, unit := float64(n)/(1<<10), "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if size < 1024 {
			break
		}
		size, unit = size/1024, next
	}
	return fmt.Sprintf("%.1f %s", size, unit)
}
