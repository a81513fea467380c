// Package runnotes collects in memory what attempts of jobs note: their progress and their logs.
// A handler only ever takes a mutex that nobody holds while a disk is written.
package runnotes

import (
	"bytes"
	"sync"
	"time"
	"unicode/utf8"
)

// Bounds of what is kept.
const (
	MaxHead = 16 << 10 // bytes of the first lines of a log
	MaxTail = 16 << 10 // bytes of its last lines
	MaxLine = 4 << 10  // bytes of one line
	MaxText = 256      // bytes of the text of a progress
)

// Runs has the notes of all attempts of a worker. The zero value is ready.
type Runs struct {
	mu   sync.Mutex
	runs map[[16]byte]*Run
	wake chan struct{}
}

// New returns a collection without notes.
func New() *Runs { return &Runs{runs: make(map[[16]byte]*Run), wake: make(chan struct{}, 1)} }

// Noted returns a channel that receives after something was noted.
func (r *Runs) Noted() <-chan struct{} { return r.wake }

// Wake has [Runs.Noted] receive.
func (r *Runs) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run has the notes of one attempt.
type Run struct {
	of      *Runs
	ID      [16]byte
	Began   time.Time
	Attempt int

	// The mutex of the collection guards these.
	progress Progress
	moved    bool // the progress is newer than what was taken
	head     []byte
	tail     []byte
	dropped  int64
	written  bool // the log is newer than what was taken
	stored   bool // something was taken
}

// Progress is how far an attempt is.
type Progress struct {
	Done, Total int64
	Text        string
	At          time.Time
}

// Notes are what is to be stored of an attempt.
type Notes struct {
	ID       [16]byte
	Began    time.Time
	Attempt  int
	Progress *Progress // nil if it is stored already
	Log      *Log      // nil if it is stored already
}

// Log is what is kept of a log.
type Log struct {
	Head, Tail []byte
	Dropped    int64 // bytes between them
}

// Of returns the notes of the attempt of a job that began at a time.
func (r *Runs) Of(id [16]byte, began time.Time, attempt int) *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.runs[id]
	if run == nil || !run.Began.Equal(began) {
		run = &Run{of: r, ID: id, Began: began, Attempt: attempt}
		r.runs[id] = run
	}
	return run
}

// Note notes how far the attempt is.
func (r *Run) Note(done, total int64, text string, now time.Time) {
	r.of.mu.Lock()
	r.progress = Progress{max(done, 0), max(total, 0), text, now}
	if total > 0 {
		r.progress.Done = min(r.progress.Done, total)
	}
	if len(text) > MaxText {
		r.progress.Text = cut(text, MaxText)
	}
	r.moved = true
	r.of.mu.Unlock()
	r.of.Wake()
}

// Write adds one record to the log. It implements io.Writer.
func (r *Run) Write(record []byte) (int, error) {
	line := record
	if len(line) > MaxLine {
		line = append([]byte(cut(string(line), MaxLine-len("…\n"))), "…\n"...)
	}
	r.of.mu.Lock()
	if len(r.tail) == 0 && r.dropped == 0 && len(r.head)+len(line) <= MaxHead {
		r.head = append(r.head, line...)
	} else {
		r.tail = append(r.tail, line...)
		r.dropped += int64(r.shorten())
	}
	r.written = true
	r.of.mu.Unlock()
	r.of.Wake()
	return len(record), nil
}

// shorten drops whole lines from the tail, some at a time, and returns how many bytes.
func (r *Run) shorten() int {
	over := len(r.tail) - MaxTail
	if over <= 0 {
		return 0
	}
	from := over + MaxTail/8
	if end := bytes.IndexByte(r.tail[from:], '\n'); end >= 0 {
		from += end + 1
	}
	r.tail = append(r.tail[:0], r.tail[from:]...)
	return from
}

// Take returns what is to be stored of all attempts.
func (r *Runs) Take() (all []Notes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range r.runs {
		if n, any := run.take(); any {
			all = append(all, n)
		}
	}
	return all
}

func (r *Run) take() (n Notes, any bool) {
	n = Notes{ID: r.ID, Began: r.Began, Attempt: r.Attempt}
	if r.moved {
		p := r.progress
		n.Progress = &p
	}
	if r.written {
		n.Log = &Log{bytes.Clone(r.head), bytes.Clone(r.tail), r.dropped}
	}
	any = r.moved || r.written
	r.stored = r.stored || any
	r.moved, r.written = false, false
	return n, any
}

// Again has the next [Runs.Take] return notes that could not be stored, unless their attempts are gone.
// It wakes whoever stores them.
func (r *Runs) Again(all []Notes) {
	r.mu.Lock()
	defer r.Wake()
	defer r.mu.Unlock()
	for _, n := range all {
		if run := r.runs[n.ID]; run != nil && run.Began.Equal(n.Began) {
			run.moved = run.moved || n.Progress != nil
			run.written = run.written || n.Log != nil
		}
	}
}

// End forgets an attempt. It returns what is to be stored of its log, and whether anything was stored of it
// before.
func (r *Runs) End(id [16]byte, began time.Time) (n Notes, log, stored bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.runs[id]
	if run == nil || !run.Began.Equal(began) {
		return Notes{}, false, false
	}
	delete(r.runs, id)
	stored, log = run.stored, run.written
	n, _ = run.take()
	return n, log, stored
}

// cut returns the first bytes of a text that end a character.
func cut(text string, most int) string {
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
