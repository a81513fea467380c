package workflow

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/worker"
)

// attempt runs a run until it waits. A worker calls it with its lease. An error is for the
// worker: the run is unchanged and is retried as a job is.
func (e *Engine) attempt(ctx context.Context, f Definition, l *pawl.Lease) error {
	if x, t := e.wake(ctx, f, l); x != nil {
		defer x.leave(t)
		defer x.watch()()
		defer x.awaitDeadline()()
		return x.await(ctx, t)
	}
	x := newExecution(ctx, e, f, l.ID, l)
	t := x.turn
	e.hub.enter(l.ID, x) // later requests are notified; earlier ones are in the row
	defer x.leave(t)
	defer x.watch()()
	input, err := x.load(ctx)
	if x.row != nil && x.row.late(e.now()) {
		row, failed := x.expire()
		if failed != nil {
			return failed
		}
		x.row = row
	}
	switch {
	case err != nil && x.row != nil && errors.Is(err, pawl.ErrCorrupt):
		if x.row.Terminate != "" {
			return x.finish(&finish{status: Terminated, err: ErrTerminated})
		}
		x.made, x.bytes = 0, 0 // only a part of the journal was read
		return x.block(err)
	case errors.Is(err, pawl.ErrCorrupt):
		return pawl.Permanent(err)
	case err != nil:
		return err
	case x.row == nil: // the job came from a damaged file, or from an export of a build that did not export runs
		return pawl.Permanent(fmt.Errorf("run %s: %w: the job is here, and the rows of the run are not; start it anew under its ID", l.ID, ErrNotFound))
	case !x.row.open():
		return nil
	}
	x.observe(x.row)
	defer x.awaitDeadline()()
	if x.row.Terminate != "" { // without its function, which may be stuck
		return x.stoppedBy(ErrTerminated)
	}
	if x.row.Paused && x.row.Cancel == "" && !x.missesTurn() {
		return x.awaitResume()
	}
	if in, err := x.takePlaces(); !in || err != nil {
		return err
	}
	if x.spare {
		if err := x.clearSpare(); err != nil {
			return err
		}
	}
	go func() {
		defer close(x.returned)
		x.output, x.err = x.call(input)
	}()
	return x.await(ctx, t)
}

// await ends the run once its function has returned, unless the turn ends first.
func (x *execution) await(ctx context.Context, t *turn) error {
	defer context.AfterFunc(ctx, func() { x.interrupt(t, context.Cause(ctx)) })()
	select {
	case <-t.over:
	case <-x.returned:
		if !t.isOver() {
			defer x.letGo()
			return x.conclude(x.output, x.err)
		}
	}
	return nil
}

// interrupt stops the run for a reason that concerns only one turn.
func (x *execution) interrupt(t *turn, reason error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.turn == t && !x.warm {
		_ = x.stopLocked(reason)
	}
}

// leave ends the notifications of a turn. A run that stays in memory has ended them itself.
func (x *execution) leave(t *turn) {
	if !t.isOver() {
		x.engine.hub.leave(x.run, x)
	}
}

// call calls the function, and returns once no goroutine of the function runs.
func (x *execution) call(input []byte) (output []byte, err error) {
	x.mu.Lock() // others may have a reference to x by now
	root := x.newScope("", nil)
	x.mu.Unlock()
	err = root.function(func(r *Run) (err error) {
		output, err = x.flow.start(r, input)
		return err
	})
	x.mu.Lock()
	x.active--
	x.mu.Unlock()
	x.open.Wait()
	return output, err
}

// function calls a function that makes the calls of the scope, and returns once its branches have ended.
func (s *scope) function(fn func(*Run) error) (err error) {
	x := s.x
	var function sync.WaitGroup // runs in its own goroutine, which may be ended
	function.Go(func() {
		s.protect(&err, func() error { return fn(&Run{x, s}) })
	})
	function.Wait()
	if s.fails(err) {
		s.abandonOpen()
	}
	_ = s.leftover() // before the branches make new calls
	s.leave()
	if stopped := s.await(func() bool { return x.branches == 0 }); stopped == nil && x.unbegun(s, false) == nil && !s.fails(err) {
		if lost := s.unawaited(); lost != nil {
			err = lost
		}
	}
	return err
}

// fails reports whether a function that returned this error has failed, or was cancelled.
func (s *scope) fails(err error) bool {
	if s.inUndo() {
		return err != nil
	}
	return s.x.undoes(err)
}

// panicError is a panic of the code between the calls.
type panicError struct{ worker.PanicError }

// protect runs the author's code and keeps its error. A panic, or the end of its goroutine,
// stops the run, unless spin ended the goroutine. When a goroutine ends, only deferred functions
// still run.
func (s *scope) protect(err *error, fn func() error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		p := &panicError{panicked(recover())}
		if p.Value == nil {
			if *err = s.obeyed(); *err != nil {
				return
			}
			p.Value = "runtime.Goexit was called"
		}
		*err = s.x.stop(p)
	}()
	*err = fn()
	returned = true
}

// conclude writes how the run ended.
func (x *execution) conclude(output []byte, err error) error {
	if stopped := x.reason(); stopped != nil {
		return x.stoppedBy(stopped)
	}
	cancelled := x.wasCancelled()
	var again *restartError
	if !x.undoes(err) {
		switch mismatch := x.unneeded(); {
		case mismatch != nil:
			return x.stoppedBy(mismatch)
		case errors.As(err, &again):
			return x.restart(again.input)
		}
		return x.finish(&finish{status: Done, output: output})
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

// undoes reports whether the function's result makes the run undo its steps.
func (x *execution) undoes(err error) bool {
	var again *restartError
	return x.wasCancelled() || err != nil && !errors.As(err, &again)
}

// wasCancelled reports whether any scope received ErrCancelled.
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

// stoppedBy handles a run whose calls were refused before its function returned.
func (x *execution) stoppedBy(reason error) error {
	var mismatch *DeterminismError
	var panicked *panicError
	switch {
	case errors.Is(reason, ErrSuspended), driver.Settled(x.lease): // the run may have stopped for another reason first
		return nil
	case errors.Is(reason, ErrTerminated):
		return x.finish(&finish{status: Terminated, err: ErrTerminated})
	case errors.As(reason, &mismatch), errors.As(reason, &panicked), errors.Is(reason, pawl.ErrCorrupt), errors.Is(reason, errCircle), errors.Is(reason, errWrongTx), errors.Is(reason, ErrCodec):
		return x.block(reason)
	}
	return reason
}
