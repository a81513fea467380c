// Package progress shows how far long work is, on one line of a terminal: a bar with what is
// done, how fast and for how long still; or a spinner where nobody knows how much there is.
// On anything that is no terminal it shows nothing, so that logs and pipes stay clean.
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

// Bytes are shown as KiB, MiB and so on; any other unit is a plural noun such as "jobs",
// and counted.
const Bytes Unit = "bytes"

// The bar appears when the work has taken this long, and is drawn this often.
const (
	patience = 300 * time.Millisecond
	interval = 100 * time.Millisecond
)

// Bar is one line of progress. Its methods may be called from several goroutines; on a nil
// Bar they do nothing.
type Bar struct {
	title string
	unit  Unit
	width func() int // of the terminal, in columns; 0 when it cannot be told
	color bool
	now   func() time.Time

	mu      sync.Mutex
	out     io.Writer
	begun   time.Time
	drawn   time.Time // zero before the first drawing
	columns int       // of what stands on the line
	frame   int       // of the spinner
	stopped bool
}

// Start returns a bar that shows itself on w when w is a terminal that can redraw a line, and
// never otherwise. The title says what is done, as in "checking jobs.db".
//
//	bar := progress.Start(os.Stderr, "checking jobs.db", progress.Bytes)
//	defer bar.Stop()
//	err := q.Check(bolt.WithProgress(ctx, bar.Set))
//
// Call [Bar.Stop] before anything else is written to w.
func Start(w io.Writer, title string, unit Unit) *Bar {
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
	// A console of Windows shows colours only to who switches them on.
	color := os.Getenv("NO_COLOR") == "" && runtime.GOOS != "windows"
	return newBar(w, title, unit, width, color, time.Now)
}

func newBar(w io.Writer, title string, unit Unit, width func() int, color bool, now func() time.Time) *Bar {
	return &Bar{title: harmless(title), unit: unit, width: width, color: color, now: now, out: w, begun: now()}
}

// Set tells how much is done, of how much: a total below zero is one that nobody knows. It
// draws at most ten times a second and returns at once otherwise.
func (b *Bar) Set(done, total int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.stopped || now.Sub(b.begun) < patience || !b.drawn.IsZero() && now.Sub(b.drawn) < interval {
		return
	}
	b.drawn = now
	b.frame++
	b.draw(line{
		title: b.title, unit: b.unit, done: done, total: total, passed: now.Sub(b.begun), frame: b.frame, color: b.color,
	})
}

// Stop takes the bar away. The line is as if it had never been there.
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

// draw replaces what stands on the line.
func (b *Bar) draw(l line) {
	b.replace(l.text(b.terminal()))
}

// terminal is how many columns there are; the usual number where it cannot be told.
func (b *Bar) terminal() int {
	if columns := b.width(); columns > 0 {
		return columns
	}
	return 80
}

// replace writes over what stands on the line, and spaces over the rest of it: that works
// on terminals and consoles that know no escape sequences, too. A terminal that became
// narrower gets no more than fits on one line. An error is of no use to anybody: the work
// goes on without a bar.
func (b *Bar) replace(text string, columns int) {
	rest := min(b.columns, b.terminal()-1) - columns
	out := "\r" + text + strings.Repeat(" ", max(rest, 0))
	if columns == 0 {
		out += "\r"
	}
	_, _ = b.out.Write([]byte(out))
	b.columns = columns
}
