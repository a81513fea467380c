package workflow

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/gopawl/pawl"
)

// undoScope is the scope of the steps that undo others. No branch can have the name.
const undoScope = "_undo"

// undo is a step that is to undo what was done.
type undo struct {
	after uint32 // seq of the call before it was named
	scope *scope
	index int // how many were named before, as far as its scope waited for them
	name  string
	fn    func(context.Context) error
	opts  []StepOption
	looks []*look // signals that its scope had got, and nobody had used
}

// Undo names what is to be done when the run fails or is cancelled: mostly what takes back
// the step before. When the function has returned an error, all that were named run in the
// reverse order, each as a step: once it has succeeded never again, with retries. One that
// fails for good does not keep the others from running, and is told in the run's error.
//
// A function that handles an error and returns nil has nothing undone.
func (r *Run) Undo(name string, fn func(ctx context.Context) error, opts ...StepOption) {
	x := r.x
	if err := validName("undo step", name); err != nil {
		_ = x.stop(pawl.Permanent(err))
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped != nil {
		return
	}
	r.s.undone++
	x.undos = append(x.undos, undo{r.s.last, r.s, r.s.undone, name, fn, opts, slices.Collect(maps.Keys(r.s.looks))})
}

// unneeded is the mismatch of a function that has nothing undone, where the journal has steps that
// undo.
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

// undo runs the steps that undo. An error without a StepError in it says that the run does
// not go on now.
func (x *execution) undo() (failed error, stopped error) {
	x.mu.Lock()
	// What a loser named after a signal that it gave back is not named again after a crash.
	undos := slices.DeleteFunc(x.undos, func(u undo) bool {
		return slices.ContainsFunc(u.looks, func(l *look) bool { return l.back })
	})
	if x.stopped != nil || len(undos) == 0 && !x.unwound {
		defer x.mu.Unlock()
		return nil, x.stopped
	}
	// The order in which branches named theirs is chance; that of the calls before is in the
	// journal.
	slices.SortFunc(undos, func(a, b undo) int {
		return -cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.index, b.index), cmp.Compare(a.scope.name, b.scope.name))
	})
	s := x.newScope(undoScope, nil)
	unsaved := x.backlog.restless()
	x.mu.Unlock()
	if unsaved { // by which the undo steps are named again after a crash
		if err := x.save(); err != nil {
			return nil, err
		}
	}

	var errs []error
	for _, u := range undos {
		opts := u.opts
		if u.scope.name != "" {
			opts = append(slices.Clip(opts), namedIn(u.scope.name))
		}
		err := s.step(KindUndo, u.name, opts, decodeNothing, func(ctx context.Context, c *call, info StepInfo) ([]byte, error) {
			x.mu.Lock()
			u.scope.undoing = c.e
			x.mu.Unlock()
			return x.invoke(ctx, info, func(ctx context.Context, _ StepInfo) (any, error) { return nil, u.fn(ctx) })
		})
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

// namedIn makes the branch that named an undo step part of its fingerprint. Branches give their
// undo steps the same names, and changed code may bring these into another order: the run is
// blocked then, before an effect is undone under the key of another.
func namedIn(branch string) StepOption {
	return func(o *stepOptions) { o.key = digest('u', []byte(branch), o.key)[:16] }
}
