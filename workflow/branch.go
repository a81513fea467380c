package workflow

import (
	"errors"
	"fmt"
)

// Branch is a part of a run that executes concurrently with the rest of it.
type Branch[T any] struct {
	*branch
	out T
}

// branch is the part of a Branch that does not depend on its type. The execution's lock guards
// its fields.
type branch struct {
	x        *execution
	scope    *scope // nil if it could not begin
	by       *scope // the scope that began it
	name     string // the name of its scope, even if scope is nil
	again    bool   // by has used the name before
	finished bool
	losing   bool // a race that it loses is being decided
	awaited  bool // another function has learned of its end
	err      error
}

// Go begins a branch: fn runs in its own goroutine with its own Run, and the order of its calls
// is checked separately. The name identifies the branch. If an earlier call of the same Run
// used the name, the branch gets the suffix #2 and so on.
//
// The journal of the Run that calls Go has an entry for the start of the branch. So a branch
// can be renamed, removed, inserted or moved like any other call: only after the end of the
// journal, or the run is blocked. The next write carries that entry at no extra cost.
//
// A run ends when its branches have ended. A wait in one branch does not delay the others. When
// all of them wait, the run is suspended.
//
// If the function of the run returns an error, the branches that have not ended are abandoned, as
// by [Branch.Cancel]. If it returns nil, an error of a branch fails the run, unless a
// [Branch.Wait], [All], [AllOrNone], [Each], [Race], or [Select] has returned the result of the
// branch. A branch that was abandoned does not count.
func Go[T any](r *Run, name string, fn func(*Run) (T, error)) *Branch[T] {
	b := &Branch[T]{}
	b.branch = r.s.fork(name, func(branch *Run) (err error) {
		b.out, err = fn(branch)
		return err
	})
	return b
}

// Wait waits until the branch ends, and returns the result of its function. The error is
// [ErrAbandoned] if the branch has lost a [Race], or was cancelled, and gave back a signal.
func (b *Branch[T]) Wait(r *Run) (out T, err error) {
	if err := r.s.join(func() bool { return r.s.follows(b.branch) }); err != nil {
		return out, err
	}
	return b.result()
}

// result returns what a caller that waits for the branch gets.
func (b *Branch[T]) result() (out T, err error) {
	if b.isVoid() {
		return out, ErrAbandoned
	}
	return b.out, b.err
}

// All waits until all branches end. The results are in the order of the branches, with the zero
// value for a failed branch. The errors are joined, each with the name of its branch. [AllOrNone]
// does not wait for the others when one fails.
func All[T any](r *Run, branches ...*Branch[T]) ([]T, error) {
	out := make([]T, len(branches))
	var errs []error
	for i, b := range branches {
		if err := r.s.join(func() bool { return r.s.follows(b.branch) }); err != nil {
			return nil, err
		}
		result, err := b.result()
		if err != nil {
			errs = append(errs, fmt.Errorf("branch %q: %w", b.name, err))
		} else {
			out[i] = result
		}
	}
	return out, errors.Join(errs...)
}

// isVoid reports whether the function's result depends on a signal that was given back.
func (b *branch) isVoid() bool {
	b.x.mu.Lock()
	defer b.x.mu.Unlock()
	return b.scope != nil && (b.scope.cut || b.scope.gaveBack())
}

// fork begins a branch.
func (s *scope) fork(name string, fn func(*Run) error) *branch {
	b := s.newBranch(stepName(s.name, name, 1))
	c, err := s.begin(KindBranch, name, nil)
	if err != nil {
		b.err = err
		return b
	}
	defer c.end()
	b.name, b.again = stepName(s.name, name, c.e.Occurrence), c.e.Occurrence > 1
	if !c.known {
		s.x.enter(c.e)
	}
	b.start(c.e, fn)
	return b
}

// newBranch returns a branch that has not begun.
func (s *scope) newBranch(name string) *branch {
	b := &branch{x: s.x, by: s, name: name, finished: true}
	s.x.mu.Lock()
	s.x.forks = append(s.x.forks, b)
	s.x.mu.Unlock()
	return b
}

// enter leaves the entry of a branch to the next write: of a branch that begins, or that exceeds
// MaxBranches.
func (x *execution) enter(e *entry) {
	x.mu.Lock()
	full := x.branches >= MaxBranches
	x.mu.Unlock()
	if e.State = EntryBegun; full {
		x.fail(e, fmt.Errorf("%d branches are under way: %w; Each has a few at a time", MaxBranches, ErrTooMany))
	}
	if e.seq != 0 { // see mute
		x.later(e)
	}
}

// start begins a branch as its entry requires.
func (b *branch) start(e *entry, fn func(*Run) error) {
	if e.State == EntryFailed {
		b.err = e.err()
		return
	}
	x := b.x
	x.mu.Lock()
	defer x.mu.Unlock()
	b.scope = x.newScope(b.name, b.by)
	b.finished = false
	x.branches++
	x.open.Go(func() { b.run(fn) })
}

// run calls the function of a branch.
func (b *branch) run(fn func(*Run) error) {
	var err error
	defer func() { b.end(err) }() // even if its goroutine is ended
	b.scope.protect(&err, func() error { return fn(&Run{b.x, b.scope}) })
}

// end notifies the scopes that wait for the end of a branch.
func (b *branch) end(err error) {
	x := b.x
	if mismatch := b.scope.leftover(); mismatch != nil {
		err = mismatch
	}
	x.mu.Lock()
	b.scope.ended = true
	b.by.refusedIn(b)
	b.err, b.finished = err, true
	x.forgetBehind(b.scope)
	x.branches--
	x.wakeLocked(func(s *scope) bool { return s.waits.branches || s.waits.ends })
	x.active--
	x.mu.Unlock()
	x.rest()
}

// follows reports whether a branch has ended. What the scope does next comes after that end.
// While a race that the branch loses is being decided, follows returns false. The caller
// holds the lock.
func (s *scope) follows(b *branch) bool {
	switch {
	case !b.finished || b.losing:
		return false
	case b.scope != nil:
		s.last, s.undone = max(s.last, b.scope.last), max(s.undone, b.scope.undone)
		s.cut = s.cut || s.abandoned && b.scope.cut
		b.scope.passOn(s)
	}
	b.awaited = true
	return true
}

// join waits until ready returns true. It calls ready whenever a branch has ended.
func (s *scope) join(ready func() bool) error {
	s.spin()
	s.x.mu.Lock()
	err := s.mayCall()
	s.x.mu.Unlock()
	if err != nil {
		return err
	}
	return s.await(ready)
}

func (s *scope) await(ready func() bool) error {
	x := s.x
	for {
		x.mu.Lock()
		over, err := ready(), x.stopped
		x.mu.Unlock()
		if over || err != nil {
			return err
		}
		if _, err := s.idle(waitCondition{branches: true}, ready); err != nil {
			return err
		}
	}
}
