package workflow

import (
	"errors"
	"fmt"
)

// Branch is a part of a run that goes on beside the rest of it.
type Branch[T any] struct {
	*branch
	out T
}

// branch is what there is of a Branch whatever its type. Its fields are guarded by the
// execution's lock.
type branch struct {
	x        *execution
	scope    *scope // nil when it could not begin
	by       *scope // that began it
	name     string // the scope that it has, or would have
	again    bool   // which has made a call of that name before
	finished bool
	losing   bool // a race is being decided that it loses
	err      error
}

// Go begins a branch: fn runs in a goroutine of its own, with a Run of its own, and the
// order of its calls is checked by itself. The name tells it apart from others; where a call of
// the same Run had it before, #2 and so on follow it.
//
// That a branch began is an entry of the journal of the Run that began it. So a branch is renamed,
// removed, inserted or moved as any other call is: behind what the journal has, or the run is
// blocked. The next write carries that entry, and costs no more for it.
//
// A run ends when its branches have. A wait in one of them does not hold up the others, and
// when all wait, the run is suspended.
func Go[T any](r *Run, name string, fn func(*Run) (T, error)) *Branch[T] {
	b := &Branch[T]{}
	b.branch = r.s.fork(name, func(branch *Run) (err error) {
		b.out, err = fn(branch)
		return err
	})
	return b
}

// Wait waits for the end of the branch, and returns what its function did. The error is
// [ErrAbandoned] for a branch that has lost a [Race] and gave back a signal.
func (b *Branch[T]) Wait(r *Run) (out T, err error) {
	if err := r.s.join(func() bool { return r.s.follows(b.branch) }); err != nil {
		return out, err
	}
	return b.result()
}

// result is what whoever waits for the branch gets.
func (b *Branch[T]) result() (out T, err error) {
	if b.isVoid() {
		return out, ErrAbandoned
	}
	return b.out, b.err
}

// All waits for the end of all branches. The results are in their order, the zero value for
// one that failed; the errors are joined, each with the name of its branch.
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

// isVoid reports whether what the function did comes from a signal that was given back.
func (b *branch) isVoid() bool {
	b.x.mu.Lock()
	defer b.x.mu.Unlock()
	return b.scope != nil && (b.scope.cut || b.scope.gaveBack())
}

// fork begins a branch.
func (s *scope) fork(name string, fn func(*Run) error) *branch {
	b := &branch{x: s.x, by: s, name: stepName(s.name, name, 1), finished: true}
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

// enter leaves the entry of a branch that begins, or of one too many, to whoever writes next.
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

// start begins a branch as its entry says.
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
	defer func() { b.end(err) }() // also when its goroutine is ended
	b.scope.protect(&err, func() error { return fn(&Run{b.x, b.scope}) })
}

// end tells those who wait for the end of a branch.
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
	x.wakeLocked(func(s *scope) bool { return s.waits.branches })
	x.active--
	x.mu.Unlock()
	x.rest()
}

// follows reports whether a branch has ended. What the scope does from then on comes behind it.
// Nobody hears of the end while a race is being decided that the branch loses. The caller holds
// the lock.
func (s *scope) follows(b *branch) bool {
	switch {
	case !b.finished || b.losing:
		return false
	case b.scope != nil:
		s.last, s.undone = max(s.last, b.scope.last), max(s.undone, b.scope.undone)
		s.cut = s.cut || s.abandoned && b.scope.cut
		b.scope.passOn(s)
	}
	return true
}

// join waits until ready says so, which is asked whenever a branch has ended.
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
		if _, err := s.idle(idleness{branches: true}, ready); err != nil {
			return err
		}
	}
}
