package workflow

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/gopawl/pawl"
)

// undoScope is the scope of the undo steps. No branch can have this name.
const undoScope = "_undo"

// undo is an undo step.
type undo struct {
	after uint32 // seq of the call before it was named
	scope *scope
	index int // how many were named before, in the scope and the branches that it waited for
	name  string
	fn    func(context.Context) error
	opts  []StepOption
	looks []*look // signals that its scope had received and nobody had used
}

// Undo names a step that undoes an earlier one if the run fails or is cancelled. When the
// function returns an error, the undo steps run in reverse order. Each is a step with retries
// that does not run again once it has succeeded. If one fails permanently, the others still
// run, and the error of the run reports it.
//
// If a function handles an error and returns nil, nothing is undone.
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

// undo runs the undo steps. An error without a StepError in it says that the run does not
// continue now.
func (x *execution) undo() (failed error, stopped error) {
	x.mu.Lock()
	// After a crash, a loser does not repeat an undo step that it named after a signal it gave
	// back.
	undos := slices.DeleteFunc(x.undos, func(u undo) bool {
		return slices.ContainsFunc(u.looks, func(l *look) bool { return l.back })
	})
	if x.stopped != nil || len(undos) == 0 && !x.unwound {
		defer x.mu.Unlock()
		return nil, x.stopped
	}
	// The order in which branches named theirs is random. The order of the preceding calls is
	// in the journal.
	slices.SortFunc(undos, func(a, b undo) int {
		return -cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.index, b.index), cmp.Compare(a.scope.name, b.scope.name))
	})
	s := x.newScope(undoScope, nil)
	unsaved := x.backlog.restless()
	x.mu.Unlock()
	if unsaved { // after a crash they name the undo steps again
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

// namedIn makes the branch that named an undo step part of the step's fingerprint. Branches may
// use the same names for undo steps, and changed code may reorder them. The run is then blocked
// before an effect is undone under the wrong key.
func namedIn(branch string) StepOption {
	return func(o *stepOptions) { o.key = digest('u', []byte(branch), o.key)[:16] }
}
