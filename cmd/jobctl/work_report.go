package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/handlers"
)

// maxLines is how many lines wait for a reader of the output before some are lost. Jobs do not
// wait for the reader.
const maxLines = 4096

// report prints the attempts of a worker. The handler reports what ran, and a durable event
// reports the outcome. Both have the ID of the job.
type report struct {
	app  *app
	stop context.CancelFunc // ends the worker when the output can no longer be written

	mu     sync.Mutex
	runs   map[pawl.ID]*ranJob // attempts that are handled but not settled; guarded by mu
	missed int64               // lines lost since the last one; guarded by mu
	closed bool                // guarded by mu

	recovered atomic.Int64 // jobs that were leased when their worker was killed

	lines   chan workView
	written chan struct{} // closed when all lines are written

	streams sync.Mutex     // held while writing to the app's streams
	err     error          // error of writing to standard output; guarded by streams
	tally   map[string]int // results; guarded by streams until all lines are written
}

// ranJob is what the handler of a job knows about an attempt.
type ranJob struct {
	what    string
	attempt int
	code    *int
	cut     int64
	file    string
	err     error
}

func newReport(a *app, stop context.CancelFunc) *report {
	r := &report{
		app: a, stop: stop, runs: make(map[pawl.ID]*ranJob),
		lines: make(chan workView, maxLines), written: make(chan struct{}), tally: make(map[string]int),
	}
	go r.write()
	return r
}

// begin records that a job runs.
func (r *report) begin(job *pawl.Envelope, attempt int, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[job.ID] = &ranJob{what: what, attempt: attempt}
}

// ran records how a command ended.
func (r *report) ran(run handlers.Run) {
	r.note(run.Job.ID, func(j *ranJob) { j.code, j.cut = &run.Code, run.Cut })
}

// kept records where the output of a command is.
func (r *report) kept(id pawl.ID, file string) { r.note(id, func(j *ranJob) { j.file = file }) }

// returned records and returns the error of a handler.
func (r *report) returned(id pawl.ID, err error) error {
	r.note(id, func(j *ranJob) { j.err = err })
	return err
}

func (r *report) note(id pawl.ID, change func(*ranJob)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.runs[id]; j != nil {
		change(j)
	}
}

// runResults are the events that end an attempt, and their words in a line.
var runResults = map[pawl.EventType]string{
	pawl.EventSucceeded: "done", pawl.EventRetried: "retry", pawl.EventDied: "dead",
	pawl.EventReleased: "returned",
}

// hear is the OnEvent of the queue. It never waits.
func (r *report) hear(e pawl.Event) {
	if e.Type == pawl.EventRecovered {
		r.recovered.Add(1)
	}
	result, ok := runResults[e.Type]
	if !ok || e.Job == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	ran := r.runs[e.Job.ID]
	if ran == nil { // it did not run: it has no handler, or it became dead before
		ran = &ranJob{what: e.Job.Kind, attempt: e.Job.Attempts}
	}
	delete(r.runs, e.Job.ID)
	line := viewOfRun(result, &e, ran)
	line.Missed = r.missed
	select {
	case r.lines <- line:
		r.missed = 0
	default:
		r.missed++
	}
}

// write writes lines until there are no more.
func (r *report) write() {
	defer close(r.written)
	for line := range r.lines {
		r.streams.Lock()
		r.tally[line.Result]++
		r.line(&line)
		r.streams.Unlock()
	}
}

// line writes one line. The caller holds streams.
func (r *report) line(line *workView) {
	if r.app.people() {
		if line.Missed > 0 {
			r.app.say("note: %s missed: they arrived faster than they were read", plural(int(line.Missed), "line"))
		}
		r.app.say("%s", r.app.workLine(line))
		return
	}
	err := r.app.print(line)
	if err == nil {
		err = r.app.stdout.Flush()
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("write the output: %w", err)
		r.stop()
	}
}

// say writes a message between the lines.
func (r *report) say(format string, args ...any) {
	r.streams.Lock()
	defer r.streams.Unlock()
	r.app.say(format, args...)
}

// failed reports whether writing the output has failed.
func (r *report) failed() bool {
	r.streams.Lock()
	defer r.streams.Unlock()
	return r.err != nil
}

// close writes the remaining lines, and totals for people. Call it when no job changes any
// longer.
func (r *report) close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	close(r.lines)
	<-r.written
	if t := r.tally; r.app.people() && len(t) > 0 {
		r.say("%d done, %d to retry, %d dead, %d returned", t["done"], t["retry"], t["dead"], t["returned"])
	}
	return r.err
}

// Write writes a log entry between the lines, which come from many goroutines.
func (r *report) Write(b []byte) (int, error) {
	r.say("%s", b)
	return len(b), nil
}

// logger discards messages, because lines report failed attempts and other errors are returned.
// With -v it prints the rest.
func (r *report) logger() hclog.Logger { return r.app.loggerTo(r) }
