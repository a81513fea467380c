package progress

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// line is what a bar shows at one moment.
type line struct {
	title       string
	unit        Unit
	done, total int64
	passed      time.Duration
	frame       int
	color       bool
}

// The width of the bar itself, which depends on the room.
const (
	shortestBar = 8
	longestBar  = 40
)

const spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

// text returns the line for a terminal of that many columns, and its width, which is always
// smaller, because a terminal that wraps at its last column would keep what was written there.
// With little room, the time goes first, then the rate, the amount and the bar.
func (l line) text(columns int) (string, int) {
	room := columns - 1
	title := ansi.Truncate(l.title, max(room-len("  100%"), 0), "…")
	var parts []string // the most important first
	if l.total >= 0 {
		parts = append(parts, fmt.Sprintf("%3d%%", l.percent()))
	} else {
		frames := []rune(spinner)
		parts = append(parts, string(frames[l.frame%len(frames)]))
	}
	parts = append(parts, l.amount(), l.rate())
	if left, ok := l.left(); ok {
		parts = append(parts, left+" left")
	}
	all := func() string { return title + "  " + strings.Join(parts, "  ") }
	for len(parts) > 1 && ansi.StringWidth(all()) > room {
		parts = parts[:len(parts)-1]
	}
	bar := min(room-ansi.StringWidth(all())-2, longestBar)
	if l.total < 0 || bar < shortestBar {
		text := ansi.Truncate(all(), max(room, 0), "")
		return text, ansi.StringWidth(text)
	}
	used := ansi.StringWidth(all()) + 2 + bar
	return title + "  " + l.bar(bar) + "  " + strings.Join(parts, "  "), used
}

// bar draws in eighths of a column.
func (l line) bar(columns int) string {
	const eighths = "▏▎▍▌▋▊▉"
	filled := int(l.share() * float64(columns*8))
	full := strings.Repeat("█", filled/8)
	if part := filled % 8; part > 0 {
		full += string([]rune(eighths)[part-1])
	}
	rest := strings.Repeat("░", columns-(filled+7)/8)
	if !l.color {
		return full + rest
	}
	return "\x1b[36m" + full + "\x1b[0m" + "\x1b[2m" + rest + "\x1b[0m"
}

// share returns how much is done, from 0 to 1. If the total is 0, everything is done.
func (l line) share() float64 {
	if l.total <= 0 {
		return 1
	}
	return min(max(float64(l.done)/float64(l.total), 0), 1)
}

// percent returns 100 only if everything is done.
func (l line) percent() int { return int(l.share() * 100) }

func (l line) amount() string {
	switch {
	case l.total < 0 && l.unit == Bytes:
		return plain.Size(l.done)
	case l.total < 0:
		return fmt.Sprintf("%s %s", grouped(l.done), l.unit)
	case l.unit == Bytes:
		return fmt.Sprintf("%s of %s", plain.Size(l.done), plain.Size(l.total))
	}
	return fmt.Sprintf("%s of %s %s", grouped(l.done), grouped(l.total), l.unit)
}

// rate returns the mean since the beginning, which is also the basis for the time left.
func (l line) rate() string {
	rate := float64(max(l.done, 0)) / max(l.passed.Seconds(), 0.001)
	if l.unit == Bytes {
		return plain.Size(rate) + "/s"
	}
	return grouped(int64(rate)) + "/s"
}

// left returns the estimated time left; ok is false while there is no estimate.
func (l line) left() (string, bool) {
	if l.total < 0 || l.done <= 0 || l.done >= l.total {
		return "", false
	}
	left := l.passed.Seconds() * float64(l.total-l.done) / float64(l.done)
	switch {
	case left > 100*3600:
		return "", false
	case left >= 3600:
		return fmt.Sprintf("%dh%02dm", int(left)/3600, int(left)%3600/60), true
	case left >= 60:
		return fmt.Sprintf("%dm%02ds", int(left)/60, int(left)%60), true
	}
	return fmt.Sprintf("%ds", int(left)+1), true
}

// grouped writes a number with a space before each group of three digits: 1 234 567.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + " " + text[at:]
	}
	return text
}

// harmless replaces what a terminal would not show as one plain character: a title may contain a
// file name.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
