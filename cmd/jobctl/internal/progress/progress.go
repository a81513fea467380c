// Package progress shows the progress of long work on one line of a terminal: a bar with the
// amount done, the rate and the time left, or a spinner if the total is unknown. On anything but
// a terminal it shows nothing, so that logs and pipes stay clean.
package progress

import (
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Unit is what is counted.
type Unit string

// Bytes are shown as KiB, MiB and so on; any other unit is a plural noun such as "jobs", and
// counted.
const Bytes Unit = "bytes"

// The bar appears after the work has taken this long, and is redrawn this often.
const (
	showAfter = 300 * time.Millisecond
	interval  = 100 * time.Millisecond
)

// Bar is one line of progress. Its methods are safe for concurrent use; on a nil Bar they do
// nothing.
type Bar struct {
	title string
	unit  Unit
	width func() int // of the terminal, in columns; 0 if unknown
	color bool
	now   func() time.Time

	mu      sync.Mutex
	out     io.Writer
	begun   time.Time
	drawn   time.Time // zero before the first drawing
	columns int       // width of the current line
	frame   int       // of the spinner
	stopped bool
}

// Start returns a bar that shows itself on w if w is a terminal that can redraw a line, and
// never otherwise. The title names the work, as in "checking jobs.db".
//
//	bar := progress.Start(os.Stderr, "checking jobs.db", progress.Bytes, true)
//	defer bar.Stop()
//	err := q.Check(driver.WithProgress(ctx, bar.Set))
//
// Call [Bar.Stop] before writing anything else to w.
func Start(w io.Writer, title string, unit Unit, color bool) *Bar {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	width := func() int {
		columns, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return columns
	}
	// A Windows console shows colors only after they are enabled.
	return newBar(w, title, unit, width, color && runtime.GOOS != "windows", time.Now)
}

func newBar(w io.Writer, title string, unit Unit, width func() int, color bool, now func() time.Time) *Bar {
	return &Bar{title: harmless(title), unit: unit, width: width, color: color, now: now, out: w, begun: now()}
}

// Set sets how much of the total is done; a negative total is unknown. It draws at most ten
// times a second and returns immediately otherwise.
func (b *Bar) Set(done, total int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.stopped || now.Sub(b.begun) < showAfter || !b.drawn.IsZero() && now.Sub(b.drawn) < interval {
		return
	}
	b.drawn = now
	b.frame++
	l := line{title: b.title, unit: b.unit, done: done, total: total, passed: now.Sub(b.begun), frame: b.frame, color: b.color}
	b.replace(l.text(b.terminal()))
}

// Stop removes the bar, as if it had never been drawn.
func (b *Bar) Stop() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if b.columns > 0 {
		b.replace("", 0)
		b.columns = 0
	}
}

// terminal returns the width of the terminal, or the usual width if it is unknown.
func (b *Bar) terminal() int {
	if columns := b.width(); columns > 0 {
		return columns
	}
	return 80
}

// replace overwrites the current line, and fills the rest with spaces: that also works on
// terminals and consoles without escape sequences. A terminal that became narrower gets no more
// than fits on one line. Errors are ignored: the work continues without a bar.
func (b *Bar) replace(text string, columns int) {
	rest := min(b.columns, b.terminal()-1) - columns
	out := "\r" + text + strings.Repeat(" ", max(rest, 0))
	if columns == 0 {
		out += "\r"
	}
	_, _ = b.out.Write([]byte(out))
	b.columns = columns
}
