package top

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// cut cuts a safe text to a width in columns of the terminal, and pad returns the spaces that fill it.
func cut(s string, width int) string { return ansi.Truncate(s, max(width, 0), "…") }

func pad(s string, width int) string {
	return strings.Repeat(" ", max(width-ansi.StringWidth(s), 0))
}

// perSecond writes a rate with two significant digits: 0.3, 12, 4k.
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

// firstLine returns what a table shows of a text, before safe.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
