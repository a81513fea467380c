package top

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// safe makes a text safe to write to a terminal, on one line: what is no printable
// character is written as an escape. Everything that a file, an app or the user gave goes
// through it.
func safe(s string) string {
	if strings.IndexFunc(s, unsafe) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unsafe(r):
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

// unsafe is true for control characters, for those that reorder a line or are invisible, and
// for the one that stands for bytes which are no text.
func unsafe(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// fit cuts a safe text to a width in columns of the terminal, and fills it with spaces.
func fit(s string, width int) string { return cut(s, width) + pad(s, width) }

// fitRight does the same with the text at the right.
func fitRight(s string, width int) string { return pad(s, width) + cut(s, width) }

func cut(s string, width int) string { return ansi.Truncate(s, max(width, 0), "…") }

func pad(s string, width int) string {
	return strings.Repeat(" ", max(width-ansi.StringWidth(s), 0))
}

// span writes a length of time in at most two units: 12s, 4m02s, 3h, 2d.
func span(d time.Duration) string {
	d = max(d, 0)
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

// byteSize writes a size: 12 B, 3.4 KiB, 12.4 MiB.
func byteSize(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
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

// perSecond writes a rate with two digits that count: 0.3, 12, 4k.
func perSecond(rate float64) string {
	switch {
	case rate == 0:
		return "0"
	case rate < 9.95:
		return fmt.Sprintf("%.1f", rate)
	case rate < 9999.5:
		return fmt.Sprintf("%.0f", rate)
	}
	return fmt.Sprintf("%.0fk", rate/1000)
}

// firstLine is what a table shows of a text, before safe.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
