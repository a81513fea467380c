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
	again    bool   // which has begun one of that name before
	finished bool
	err      error
}

// Go begins a branch: fn runs in a goroutine of its own, with a Run of its own, and the
// order of its calls is checked by itself. The name tells it apart from others; where it was
// used before in the same Run, #2 and so on follow it.
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

// Wait waits for the end of the branch, and returns what its function did.
func (b *Branch[T]) Wait(r *Run) (out T, err error) {
	if err := r.s.join(b.ended); err != nil {
		return out, err
	}
	r.s.follow(b.branch)
	return b.out, b.err
}

// All waits for the end of all branches. The results are in their order, the zero value for
// one that failed; the errors are joined, each with the name of its branch.
func All[T any](r *Run, branches ...*Branch[T]) ([]T, error) {
	out := make([]T, len(branches))
	var errs []error
	for i, b := range branches {
		if err := r.s.join(b.ended); err != nil {
			return nil, err
		}
		r.s.follow(b.branch)
		if b.err != nil {
			errs = append(errs, fmt.Errorf("branch %q: %w", b.name(), b.err))
		} else {
			out[i] = b.out
		}
	}
	return out, errors.Join(errs...)
}

// Each runs fn for every item, in branches called name-0, name-1 and so on, at most limit of
// them at a time. The results are in the order of the items; errors are as those of [All].
func Each[Item, T any](r *Run, name string, items []Item, limit int, fn func(*Run, Item) (T, error)) ([]T, error) {
	limit = min(max(limit, 1), MaxBranches)
	branches := make([]*Branch[T], 0, len(items))
	for i, item := range items {
		err := r.s.join(func() bool {
			open := 0
			for _, b := range branches {
				if !b.finished {
					open++
				}
			}
			return open < limit
		})
		if err != nil {
			return nil, err
		}
		branches = append(branches, Go(r, fmt.Sprintf("%s-%d", name, i), func(r *Run) (T, error) { return fn(r, item) }))
	}
	return All(r, branches...)
}

// ended reports whether the branch has. The caller holds the lock.
func (b *branch) ended() bool { return b.finished }

func (b *branch) name() string {
	if b.scope == nil {
		return ""
	}
	return b.scope.name
}

// fork begins a branch.
func (s *scope) fork(name string, fn func(*Run) error) *branch {
	x := s.x
	b := &branch{x: x, by: s, finished: true}
	if b.err = validName("branch", name); b.err != nil {
		return b
	}
	s.spin()
	x.mu.Lock()
	defer x.mu.Unlock()
	if b.err = s.mayCall(); b.err != nil {
		return b
	}
	if x.branches == MaxBranches {
		b.err = fmt.Errorf("branch %q: %d are under way: %w; Each has a few at a time", name, x.branches, ErrTooMany)
		return b
	}
	s.branches[name]++
	b.again = s.branches[name] > 1
	b.scope = x.newScope(stepName(s.name, name, s.branches[name]), s)
	b.finished = false
	x.branches++
	x.open.Go(func() { b.run(fn) })
	return b
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
	x.branches--
	x.wakeLocked(func(s *scope) bool { return s.waits.branches })
	x.active--
	x.mu.Unlock()
	x.rest()
}

// follow says that what the scope does from now on comes behind a branch that it waited for.
func (s *scope) follow(b *branch) {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if b.scope != nil {
		s.last, s.undone = max(s.last, b.scope.last), max(s.undone, b.scope.undone)
	}
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
