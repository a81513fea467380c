package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

// undoScope is the scope of the undo steps. No branch can have this name.
const undoScope = "_undo"

// inUndo reports whether a scope is that of the undo steps or below it: the function of an [Run.UndoWith], or
// a branch of such a function.
func inUndo(scope string) bool { return strings.HasPrefix(scope, undoScope) }

func (s *scope) inUndo() bool { return inUndo(s.name) }

// undo is an undo step.
type undo struct {
	after uint32 // seq of the last call before it was added
	scope *scope
	index int // how many undo steps were added before, in the scope and the branches that it waited for
	name  string
	fn    func(context.Context) error
	with  func(*Run) error // in place of fn, for UndoWith
	opts  []StepOption
	looks []*look // signals that its scope had received and nobody had used
}

// Undo adds a step that undoes an earlier one if the run fails or is cancelled. When the function returns an error,
// the undo steps run in reverse order. Each undo step has retries, and does not run again once it has succeeded. If
// an undo step fails permanently, the others still run, and the error of the run reports the failure.
//
// Before the first undo step, the run waits until the children that it cancelled have ended, and so
// have undone their steps. A child that cannot run, because it is blocked or dead or no worker
// handles its flow, keeps its parent waiting. [Info].Error of the parent names the child.
// [Engine.Terminate] of the child ends the wait. Engine.Terminate of the parent ends the parent
// without undoing anything.
//
// If a function handles an error and returns nil, nothing is undone.
func (r *Run) Undo(name string, fn func(ctx context.Context) error, opts ...StepOption) {
	r.undo(name, undo{fn: fn, opts: opts})
}

// UndoWith adds an undo step that makes calls: steps, sleeps, waits, children, branches. It runs in the same reverse
// order as the steps of [Run.Undo]. The function gets a Run of its own, whose calls work although the run has failed
// or is cancelled. Like the function of a flow, it runs again from the top whenever the run continues, and must only
// compute between calls. Its steps are retried, but the function is not retried as a whole: an error that it returns
// is permanent, even an error of [Restart].
//
// An undo step that adds an undo step blocks the run. The undo may make [MaxEntries] more calls.
func (r *Run) UndoWith(name string, fn func(r *Run) error) { r.undo(name, undo{with: fn}) }

func (r *Run) undo(name string, u undo) {
	x := r.x
	if err := validName("undo step", name); err != nil {
		_ = x.stop(pawl.Permanent(err))
		return
	}
	if r.s.inUndo() {
		_ = x.stop(&panicError{worker.PanicError{Value: fmt.Sprintf("an undo step named the undo step %q; make its calls there instead", name)}})
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped != nil {
		return
	}
	r.s.undone++
	u.after, u.scope, u.index, u.name, u.looks = r.s.last, r.s, r.s.undone, name, slices.Collect(maps.Keys(r.s.looks))
	x.undos = append(x.undos, u)
}

// unneeded returns the mismatch of a function that undoes nothing although the journal has undo
// steps.
func (x *execution) unneeded() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.unwound {
		return x.stopped
	}
	e := x.journal[undoScope][0]
	return x.stopLocked(x.complete(&DeterminismError{Want: e.String(), Seq: e.seq, Wrote: e.Build,
		Reason: "the function had failed, and now it has not; keep what it returned until the run has ended"}))
}

// undo waits for the children of the run and runs the undo steps. The second error says that the run does
// not continue now.
func (x *execution) undo() (failed error, stopped error) {
	x.mu.Lock()
	s := x.newScope(undoScope, nil)
	x.mu.Unlock()
	if err := s.awaitChildren(); err != nil {
		return nil, err
	}
	x.mu.Lock()
	// After a crash, a loser does not repeat an undo step that it added after receiving a signal that it gave back.
	undos := slices.DeleteFunc(x.undos, func(u undo) bool {
		return slices.ContainsFunc(u.looks, func(l *look) bool { return l.back })
	})
	if x.stopped != nil || len(undos) == 0 && !x.unwound {
		defer x.mu.Unlock()
		x.active--
		return nil, x.stopped
	}
	// The order in which branches add undo steps is random. The order of the preceding calls is in the journal.
	slices.SortFunc(undos, func(a, b undo) int {
		return -cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.index, b.index), cmp.Compare(a.scope.name, b.scope.name))
	})
	unsaved := x.backlog.restless()
	x.mu.Unlock()
	if unsaved { // after a crash, the calls before them must add the undo steps again
		if err := x.save(); err != nil {
			return nil, err
		}
	}

	var errs []error
	for _, u := range undos {
		err := s.undo(&u)
		if err := x.reason(); err != nil {
			return nil, err
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if err := s.leftover(); err != nil {
		return nil, err
	}
	x.mu.Lock()
	x.active--
	x.mu.Unlock()
	return errors.Join(errs...), nil
}

// undo runs one undo step.
func (s *scope) undo(u *undo) error {
	x, opts := s.x, u.opts
	if u.scope.name != "" {
		opts = append(slices.Clip(opts), namedIn(u.scope.name))
	}
	if u.with != nil {
		return s.undoWith(u, opts)
	}
	return s.step(KindUndo, u.name, opts, decodeNothing, func(ctx context.Context, c *call, info StepInfo) ([]byte, error) {
		x.mu.Lock()
		u.scope.undoing = c.e
		x.mu.Unlock()
		return x.invoke(ctx, info, func(ctx context.Context, _ StepInfo) (any, error) { return nil, u.fn(ctx) })
	})
}

// undoWith runs an undo step that makes calls. They belong to a scope of its own, below its name.
func (s *scope) undoWith(u *undo, opts []StepOption) error {
	o, err := optionsOf(opts)
	if err != nil {
		return err
	}
	c, err := s.begin(KindUndo, u.name, o.key)
	if err != nil {
		return err
	}
	defer c.end()
	x, e := s.x, c.e
	switch {
	case e.State == EntryDone || e.State == EntryFailed:
		return c.outcome(decodeNothing)
	case !c.recorded:
		e.State = EntryBegun
		x.later(e) // before its calls
	}
	x.mu.Lock()
	own := x.newScope(stepName(e.Scope, e.Name, e.Occurrence), s)
	x.active-- // s waits for its own function
	x.fallBehind(own)
	x.mu.Unlock()
	err = own.function(u.with)
	if stopped := x.reason(); stopped != nil {
		return stopped
	}
	if e.Attempts++; err == nil {
		e.finish(nil, x.engine.now())
		return x.save(e)
	}
	x.fail(e, err)
	if err := x.save(e); err != nil {
		return err
	}
	return e.err()
}

// fallBehind records which scopes, among the given scope and those below it, have to repeat calls in the journal.
// The caller holds the lock.
func (x *execution) fallBehind(s *scope) {
	if len(s.entries) > 0 {
		x.behind[s.name] = true
	}
	for name, entries := range x.journal {
		if s.covers(name) && slices.ContainsFunc(entries, func(e *entry) bool { return e.Kind != KindVersion }) {
			x.behind[name] = true
		}
	}
}

// namedIn makes the branch that added an undo step part of the step's fingerprint. Branches may
// use the same names for undo steps, and changed code may reorder them. The fingerprint then
// blocks the run before an effect is undone under the wrong key.
func namedIn(branch string) StepOption {
	return func(o *stepOptions) { o.key = digest('u', []byte(branch), o.key)[:16] }
}
