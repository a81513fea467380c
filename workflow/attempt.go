package workflow

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// attempt runs a run for as long as it does not wait: what a worker calls with its lease. An
// error is for the worker: the run stands where it stood, and is tried again as a job is.
func (e *Engine) attempt(ctx context.Context, f Definition, l *pawl.Lease) error {
	x := newExecution(ctx, e, f, l.ID, l)
	e.hub.enter(l.ID, x) // what is asked for from now on is told, what was before is in the row
	defer e.hub.leave(l.ID, x)
	input, err := x.load(ctx)
	switch {
	case err != nil && x.row != nil && errors.Is(err, pawl.ErrCorrupt):
		return x.block(err)
	case errors.Is(err, pawl.ErrCorrupt):
		return pawl.Permanent(err)
	case err != nil:
		return err
	case x.row == nil || !x.row.open():
		return nil // it was removed, or has ended
	}
	x.heed(x.row)
	if x.row.Paused && x.row.Cancel == "" && x.row.Terminate == "" {
		return x.park()
	}
	defer context.AfterFunc(ctx, func() { _ = x.stop(context.Cause(ctx)) })()
	output, err := x.call(input)
	return x.conclude(output, err)
}

// call calls the function, and returns when nothing of it runs any more.
func (x *execution) call(input []byte) (output []byte, err error) {
	root := x.newScope("", nil)
	err = x.protect(func() error {
		output, err = x.flow.start(&Run{x, root}, input)
		return err
	})
	if stopped := root.await(func() bool { return x.branches == 0 }); stopped == nil {
		_ = root.leftover()
	}
	x.mu.Lock()
	x.active--
	x.mu.Unlock()
	x.open.Wait()
	return output, err
}

// panicError is a panic of the code between the calls.
type panicError struct{ worker.PanicError }

// protect runs code of the author's. A panic, or the end of its goroutine, stops the run.
func (x *execution) protect(fn func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		p := &panicError{worker.PanicError{Value: recover(), Stack: string(debug.Stack())}}
		if p.Value == nil {
			p.Value = "runtime.Goexit was called"
		}
		err = x.stop(p)
	}()
	err = fn()
	returned = true
	return err
}

// conclude writes how it ended.
func (x *execution) conclude(output []byte, err error) error {
	if stopped := x.reason(); stopped != nil {
		return x.stoppedBy(stopped)
	}
	cancelled := x.wasCancelled()
	var again *restartError
	switch {
	case err == nil && !cancelled:
		return x.finish(&finish{status: Done, output: output})
	case errors.As(err, &again) && !cancelled:
		return x.restart(again.input)
	}
	failed, stopped := x.undo()
	if stopped != nil {
		return x.stoppedBy(stopped)
	}
	end := &finish{status: Failed, err: err}
	if cancelled {
		end.status, end.err = Cancelled, errors.New(x.cancel)
	}
	if failed != nil {
		end.err = fmt.Errorf("%w; and not all was undone: %w", end.err, failed)
	}
	return x.finish(end)
}

// wasCancelled reports whether any scope was told so.
func (x *execution) wasCancelled() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.scopes {
		if s.cancelled {
			return true
		}
	}
	return false
}

// stoppedBy deals with a run whose calls were refused before its function had returned.
func (x *execution) stoppedBy(reason error) error {
	var mismatch *DeterminismError
	var panicked *panicError
	switch {
	case errors.Is(reason, ErrSuspended):
		return nil
	case errors.Is(reason, ErrTerminated):
		return x.finish(&finish{status: Terminated, err: ErrTerminated})
	case errors.As(reason, &mismatch), errors.As(reason, &panicked), errors.Is(reason, pawl.ErrCorrupt):
		return x.block(reason)
	}
	return reason
}

// finish is the rider that ends a run.
type finish struct {
	status Status
	output []byte
	err    error

	x       *execution
	journal journal
	open    []pawl.ID // children that have not ended

	row      *runRow
	now      time.Time
	parent   *entry // that waits for it, nil when none does
	children map[pawl.ID]*runRow
}

// finish ends the run, and tells who waits for it.
func (x *execution) finish(f *finish) error {
	x.mu.Lock()
	f.x, f.journal, f.open = x, x.take(), x.openChildren()
	x.mu.Unlock()
	if f.journal.err != nil {
		return f.journal.err
	}
	if err := x.engine.queue.Join(x.writing(), f, f.journal.bytes+len(f.output)); err != nil {
		return err
	}
	if f.row.Status != Done {
		x.engine.opts.Logger.Warn("a run did not succeed", "flow", f.row.Flow, "id", f.row.ID, "run", x.run, "status", f.row.Status, "error", f.row.Error)
	}
	h := x.engine.hub
	h.ended(x.run)
	if f.parent != nil {
		h.childEnded(f.row.Parent, f.row.ParentSeq)
	}
	for child := range f.children {
		h.poke(child)
	}
	return nil
}

// openChildren is the children for which the run waits still. The caller holds the lock.
func (x *execution) openChildren() (open []pawl.ID) {
	seen := make(map[pawl.ID]bool)
	for _, e := range x.calls {
		if e.Child != (pawl.ID{}) && e.State == EntryPending && !seen[e.Child] {
			seen[e.Child] = true
			open = append(open, e.Child)
		}
	}
	return open
}

// Check acks the job, and looks who waits.
func (f *finish) Check(p *bolt.Plan) (err error) {
	r := rowsOf(p.Tx())
	if f.row, err = r.mustRun(f.x.run); err != nil {
		return err
	}
	f.now, f.parent = p.Now(), nil
	f.row.Status, f.row.Ended, f.row.Error, f.row.Chain = f.status, f.now.UnixNano(), "", nil
	if f.row.Terminate != "" {
		f.row.Status = Terminated
	}
	switch {
	case f.row.Status == Terminated:
		f.row.Error = f.row.Terminate
	case f.err != nil:
		f.row.Error, f.row.Chain = textOf(f.err), chainOf(f.err)
	default:
		f.row.OutputBytes = len(f.output)
	}
	f.row.Due, f.row.Waits = 0, nil
	f.row.Build, f.row.Steps, f.row.Bytes = f.x.engine.opts.Build, f.x.made, f.x.bytes
	if err := f.tellParent(p, r); err != nil {
		return err
	}
	if f.children, err = cancelAll(p, r, f.open, "the run that started it has ended"); err != nil {
		return err
	}
	return p.Ack(f.x.lease)
}

// tellParent finds the entry that waits for this run, and wakes the parent.
func (f *finish) tellParent(p *bolt.Plan, r rows) error {
	if f.row.Parent == (pawl.ID{}) {
		return nil
	}
	parent, err := r.run(f.row.Parent)
	if err != nil || parent == nil || !parent.open() {
		return err
	}
	e, err := r.entry(f.row.Parent, f.row.ParentSeq)
	if err != nil || e == nil || e.State != EntryPending || e.Child != f.x.run {
		return err
	}
	f.parent = e
	e.Attempts = 1
	if f.row.Status == Done {
		e.finish(f.output, f.now)
	} else {
		err := &RunError{Flow: f.row.Flow, ID: f.row.ID, Run: f.x.run, Status: f.row.Status, Text: f.row.Error, chain: f.row.Chain}
		e.fail(err, f.now)
		e.Chain = append(e.Chain, f.row.Chain[:min(len(f.row.Chain), maxChain-len(e.Chain))]...)
	}
	state, err := p.State(f.row.Parent)
	if err == nil && state == pawl.Delayed && !parent.Paused && parent.Status != Blocked {
		err = p.RunNow(f.row.Parent)
	}
	return err
}

// cancelAll asks runs to end, and makes those ready that wait. It returns their rows, to be
// written.
func cancelAll(p *bolt.Plan, r rows, runs []pawl.ID, reason string) (map[pawl.ID]*runRow, error) {
	asked := make(map[pawl.ID]*runRow)
	for _, id := range runs {
		row, err := r.run(id)
		if err != nil {
			return nil, err
		}
		if row == nil || !row.open() || row.Cancel != "" {
			continue
		}
		row.Cancel = reason
		asked[id] = row
		state, err := p.State(id)
		if err == nil && state == pawl.Delayed {
			err = p.RunNow(id)
		}
		if err != nil {
			return nil, err
		}
	}
	return asked, nil
}

func (r rows) putAll(runs map[pawl.ID]*runRow) error {
	for id, row := range runs {
		if err := r.putRun(id, row); err != nil {
			return err
		}
	}
	return nil
}

// Apply writes the end.
func (f *finish) Apply(tx *bbolt.Tx) error {
	r := rowsOf(tx)
	if err := f.journal.apply(r); err != nil {
		return err
	}
	if f.row.Status == Done {
		if err := r.put(bucketBlobs, seqKey(f.x.run, outputSeq), f.output); err != nil {
			return err
		}
	}
	if f.row.Retain > 0 {
		if err := r.put(bucketEnded, endedKey(f.now.Add(time.Duration(f.row.Retain)), f.x.run), nil); err != nil {
			return err
		}
	}
	if f.parent != nil {
		var own journal
		own.add(f.row.Parent, f.parent)
		if err := own.apply(r); err != nil {
			return err
		}
	}
	if err := r.putAll(f.children); err != nil {
		return err
	}
	if err := r.delete(bucketBlocked, f.x.run[:]); err != nil {
		return err
	}
	return r.putRun(f.x.run, f.row)
}

// block is the rider that has a run wait for another build.
type block struct {
	x       *execution
	why     error
	journal journal
	row     *runRow
}

// block has the run wait for another build, or for whoever resumes it.
func (x *execution) block(why error) error {
	x.mu.Lock()
	b := &block{x: x, why: why, journal: x.take()}
	x.mu.Unlock()
	if err := x.engine.queue.Join(x.writing(), b, b.journal.bytes); err != nil {
		return err
	}
	x.engine.opts.Logger.Error("a run is blocked until another build opens the file, or it is resumed",
		"flow", x.row.Flow, "id", x.row.ID, "run", x.run, "error", why)
	return nil
}

// Check ends the lease.
func (b *block) Check(p *bolt.Plan) (err error) {
	if b.row, err = rowsOf(p.Tx()).mustRun(b.x.run); err != nil {
		return err
	}
	b.row.Status, b.row.Error, b.row.Build = Blocked, textOf(b.why), b.x.engine.opts.Build
	b.row.Due, b.row.Waits = 0, nil
	if b.row.Terminate != "" {
		return p.Snooze(b.x.lease, p.Now()) // to be ended
	}
	return p.Snooze(b.x.lease, p.Now().Add(forever))
}

// Apply says so in the rows.
func (b *block) Apply(tx *bbolt.Tx) error {
	r := rowsOf(tx)
	if err := b.journal.apply(r); err != nil {
		return err
	}
	if err := r.put(bucketBlocked, b.x.run[:], []byte(b.row.Build)); err != nil {
		return err
	}
	return r.putRun(b.x.run, b.row)
}

// park has a paused run wait.
func (x *execution) park() error {
	s := &suspend{x: x, made: x.made, bytes: x.bytes}
	err := x.engine.queue.Join(x.writing(), s, 0)
	if errors.Is(err, errWoken) {
		return pawl.Snooze(0) // it was resumed or cancelled meanwhile
	}
	return err
}

// restart is the rider that begins a run anew.
type restart struct {
	x     *execution
	input []byte
	open  []pawl.ID

	row      *runRow
	children map[pawl.ID]*runRow
}

func (x *execution) restart(input []byte) error {
	x.mu.Lock()
	r := &restart{x: x, input: input, open: x.openChildren()}
	x.mu.Unlock()
	if err := x.engine.queue.Join(x.writing(), r, len(input)); err != nil {
		return err
	}
	for child := range r.children {
		x.engine.hub.poke(child)
	}
	return nil
}

// Check makes the job ready again.
func (w *restart) Check(p *bolt.Plan) (err error) {
	r := rowsOf(p.Tx())
	if w.row, err = r.mustRun(w.x.run); err != nil {
		return err
	}
	w.row.Restarts++
	w.row.Status, w.row.Build, w.row.Steps, w.row.Bytes = Running, w.x.engine.opts.Build, 0, 0
	w.row.Due, w.row.Waits, w.row.Error = 0, nil, ""
	if w.children, err = cancelAll(p, r, w.open, "the run that started it began anew"); err != nil {
		return err
	}
	return p.Snooze(w.x.lease, p.Now())
}

// Apply removes the journal.
func (w *restart) Apply(tx *bbolt.Tx) error {
	r := rowsOf(tx)
	if _, err := r.remove(w.x.run, 2*MaxEntries+2, bucketSteps, bucketBlobs); err != nil {
		return err
	}
	if err := r.put(bucketBlobs, seqKey(w.x.run, inputSeq), w.input); err != nil {
		return err
	}
	if err := r.putAll(w.children); err != nil {
		return err
	}
	return r.putRun(w.x.run, w.row)
}
