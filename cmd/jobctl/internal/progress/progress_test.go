package progress

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	bar := line{title: "checking a.db", unit: Bytes, done: 3 << 20, total: 8 << 20, passed: 2 * time.Second}
	count := line{title: "retrying", unit: "jobs", done: 12_300, total: 100_000, passed: 3 * time.Second}
	endless := line{title: "exporting", unit: "jobs", done: 12_300, total: -1, passed: 3 * time.Second, frame: 2}
	with := func(l line, change func(*line)) line { change(&l); return l }
	cases := []struct {
		rule    string
		line    line
		columns int
		want    string
	}{
		{"a wide terminal has everything", bar, 100, "checking a.db  ██████████████▎░░░░░░░░░░░░░░░░░░░░░░░   37%  3.0 MiB of 8.0 MiB  1.5 MiB/s  4s left"},
		{"the bar takes the room that there is", bar, 80, "checking a.db  ██████▊░░░░░░░░░░░   37%  3.0 MiB of 8.0 MiB  1.5 MiB/s  4s left"},
		{"no bar is better than a stump", bar, 68, "checking a.db   37%  3.0 MiB of 8.0 MiB  1.5 MiB/s  4s left"},
		{"the time goes first", bar, 56, "checking a.db   37%  3.0 MiB of 8.0 MiB  1.5 MiB/s"},
		{"the share goes last", bar, 20, "checking a.db   37%"},
		{"the title is cut before the share", bar, 12, "chec…   37%"},
		{"counts are grouped", count, 90, "retrying  ███▋░░░░░░░░░░░░░░░░░░░░░░░░░░   12%  12 300 of 100 000 jobs  4 100/s  22s left"},
		{"an unknown total has a spinner, and no share or end", endless, 90, "exporting  ⠹  12 300 jobs  4 100/s"},
		{"bytes of an unknown total", with(endless, func(l *line) { l.unit = Bytes }), 90, "exporting  ⠹  12.0 KiB  4.0 KiB/s"},
		{"100 % is all of it", with(count, func(l *line) { l.done = 99_999 }), 50, "retrying   99%  99 999 of 100 000 jobs  33 333/s"},
		{"more than all is no more than 100 %", with(count, func(l *line) { l.done = 200_000 }), 40, "retrying  100%  200 000 of 100 000 jobs"},
		{"of nothing everything is done", with(count, func(l *line) { l.done, l.total = 0, 0 }), 40, "retrying  100%  0 of 0 jobs  0/s"},
		{"nothing done says nothing of the end", with(count, func(l *line) { l.done = 0 }), 48, "retrying    0%  0 of 100 000 jobs  0/s"},
		{"minutes", with(count, func(l *line) { l.done = 100 }), 62, "retrying    0%  100 of 100 000 jobs  33/s  49m57s left"},
		{"hours", with(count, func(l *line) { l.done = 10 }), 58, "retrying    0%  10 of 100 000 jobs  3/s  8h19m left"},
		{"a time that is no use", with(count, func(l *line) { l.done, l.total = 1, 1e9 }), 54, "retrying    0%  1 of 1 000 000 000 jobs  0/s"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			got, columns := c.line.text(c.columns)
			require.Equal(t, c.want, got)
			require.Equal(t, ansi.StringWidth(got), columns)
		})
	}
}

// A line never reaches the last column, whatever it contains, so it never wraps.
func TestLineIsNarrowerThanTheTerminal(t *testing.T) {
	for columns := 1; columns <= 130; columns++ {
		for _, title := range []string{"", "checking", "データを確認する jobs.db", strings.Repeat("x", 300)} {
			for _, total := range []int64{-1, 0, 1 << 40} {
				for _, color := range []bool{false, true} {
					text, used := line{title: title, unit: Bytes, done: 1 << 39, total: total, passed: time.Minute, color: color}.text(columns)
					require.Less(t, ansi.StringWidth(text), columns, "%q", text)
					require.Equal(t, ansi.StringWidth(text), used, "%q", text)
				}
			}
		}
	}
}

// clock is the time of a test.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func testBar(out *bytes.Buffer, columns *int, color bool) (*Bar, *clock) {
	c := &clock{time.Unix(1_000_000, 0)}
	return newBar(out, "working\x1b[31m\n", "jobs", func() int { return *columns }, color, c.now), c
}

// Short work shows no bar; a bar for long work is drawn at most ten times a second.
func TestBarIsThrottled(t *testing.T) {
	var out bytes.Buffer
	columns := 80
	bar, clock := testBar(&out, &columns, false)
	bar.Set(1, 100)
	clock.at = clock.at.Add(showAfter - 1)
	bar.Set(2, 100)
	require.Empty(t, out.String())
	bar.Stop()
	require.Empty(t, out.String(), "nothing is taken away where nothing was")

	bar, clock = testBar(&out, &columns, false)
	clock.at = clock.at.Add(showAfter)
	for i := range int64(1000) { // ten seconds
		bar.Set(i, 1000)
		clock.at = clock.at.Add(10 * time.Millisecond)
	}
	require.Equal(t, 100, strings.Count(out.String(), "\r"))
}

// The bar stays on its line and leaves it empty: it writes no line break and no control
// character except the carriage return, and each drawing covers the previous one.
func TestBarKeepsToItsLine(t *testing.T) {
	var out bytes.Buffer
	columns := 100
	bar, clock := testBar(&out, &columns, false)
	var covered int
	for i, width := range []int{100, 40, 90, 15, 120, 60, 60} {
		columns = width
		clock.at = clock.at.Add(time.Second)
		out.Reset()
		bar.Set(int64(i), 7)
		drawn, found := strings.CutPrefix(out.String(), "\r")
		require.True(t, found)
		require.Equal(t, -1, strings.IndexFunc(drawn, unicode.IsControl), "%q", drawn)
		require.Less(t, ansi.StringWidth(drawn), width, "%q", drawn)
		require.GreaterOrEqual(t, ansi.StringWidth(drawn), min(covered, width-1))
		covered = ansi.StringWidth(strings.TrimRight(drawn, " "))
	}
	out.Reset()
	bar.Stop()
	require.Equal(t, "\r"+strings.Repeat(" ", covered)+"\r", out.String())
	out.Reset()
	bar.Stop()
	clock.at = clock.at.Add(time.Second)
	bar.Set(7, 7)
	require.Empty(t, out.String(), "a bar that was taken away does not come back")
}

// Without colors there is no escape sequence; with colors each sequence is ended.
func TestBarColors(t *testing.T) {
	for _, color := range []bool{false, true} {
		var out bytes.Buffer
		columns := 80
		bar, clock := testBar(&out, &columns, color)
		clock.at = clock.at.Add(time.Second)
		bar.Set(3, 7)
		require.Equal(t, color, strings.Contains(out.String(), "\x1b"), "%q", out.String())
		require.NotContains(t, out.String(), "\x1b[31m", "the title is not shown as it is")
		require.Equal(t, strings.Count(out.String(), "\x1b[0m")*2, strings.Count(out.String(), "\x1b"))
	}
}

// Anything but a terminal receives nothing, and callers need not check whether there is a bar.
func TestNoTerminal(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	var buffer bytes.Buffer
	bar := Start(&buffer, "working", "jobs", true)
	require.Nil(t, bar)
	bar.Set(1, 2)
	bar.Stop()
	require.Empty(t, buffer.String())
	require.Nil(t, Start(file, "working", "jobs", true))
	require.Nil(t, Start(null, "working", "jobs", true))
}
