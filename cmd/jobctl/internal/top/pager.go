package top

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// pager is a text that may be longer than the screen: the detail of a job, or the help.
type pager struct {
	title string   // safe
	lines []string // safe
	from  int
}

// scroll moves the text; it stops at both ends.
func (p *pager) scroll(by, width, height int) {
	p.from = max(min(p.from+by, len(p.wrapped(width))-height), 0)
}

// wrapped breaks lines wider than the screen, and indents continuations like their line.
func (p *pager) wrapped(width int) []string {
	var lines []string
	for _, line := range p.lines {
		for first := true; ansi.StringWidth(line) > width && width > 8; first = false {
			head := ansi.Truncate(line, width, "")
			lines = append(lines, head)
			indent := len(line) - len(strings.TrimLeft(line, " "))
			if first {
				indent += 2
			}
			line = strings.Repeat(" ", min(indent, width/2)) + ansi.TruncateLeft(line, ansi.StringWidth(head), "")
		}
		lines = append(lines, line)
	}
	return lines
}

// view returns the part that fits.
func (p *pager) view(width, height int) []string {
	lines := p.wrapped(width)
	from := max(min(p.from, len(lines)-height), 0)
	return lines[from:min(from+height, len(lines))]
}
