package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Cancel abandons the branch, as a lost [Race] does: its current step is interrupted, its calls
// return [ErrAbandoned], the children it waits for are cancelled, and it gives back the signals
// that it has received and not used. The branches below it are abandoned, too. If a cancelled
// branch waits for a branch that is not cancelled, it continues to wait for the end of that branch.
//
// Cancel returns once the cancellation is durable, and does not wait for the end of the branch. A
// branch that has ended keeps its result, unless it gives back a signal. The name is the identity
// of the call in the journal.
//
// A branch cannot cancel itself or an enclosing branch: the error matches [ErrNested]. Any other
// error means that the run does not continue now: return it.
func (b *Branch[T]) Cancel(r *Run, name string) error { return r.s.abandonBranch(name, b.branch) }

func (s *scope) abandonBranch(name string, b *branch) error {
	if b.scope != nil && b.scope.covers(s.name) {
		return fmt.Errorf("%w: branch %q cannot cancel %q; return from its function", ErrNested, s.name, b.name)
	}
	c, err := s.begin(KindCancel, name, nil)
	if err != nil {
		return err
	}
	defer c.end()
	all := []*branch{b}
	if c.known {
		_, err := c.decided(-1, all)
		return err
	}
	return c.decide(&raceResult{Winner: -1, Branches: namesOf(all)}, all, "the branch that started it was cancelled")
}

// openBranches is the name of the call that a function makes after it has returned an error, to
// abandon the branches that have not ended.
const openBranches = "open branches"

// abandonOpen abandons the open branches of a function that has returned an error. If that cannot
// be stored, the run waits for them. Without an entry in the journal, branches that continue after
// a crash would make new calls before the function returns its error again.
func (s *scope) abandonOpen() {
	x := s.x
	x.mu.Lock()
	known := s.at == len(s.entries)-1 && s.entries[s.at].Kind == KindCancel && s.entries[s.at].Name == openBranches
	// If the journal has undo steps and not this call, all branches of the run's function had ended.
	skip := x.stopped != nil || !known && (len(x.openBranches()) == 0 || s.mute() || s.refusals > 0 || x.unwound && !s.inUndo())
	x.mu.Unlock()
	if skip || !known && (s.leftover() != nil || x.unbegun(s, true) != nil) {
		return
	}
	c, err := s.begin(KindCancel, openBranches, nil)
	if err != nil {
		return // the run does not continue now, or waits
	}
	defer c.end()
	if !c.known {
		x.mu.Lock()
		open := x.openBranches()
		x.mu.Unlock()
		_ = c.decide(&raceResult{Winner: -1}, open, parentFailed)
	}
}

// openBranches returns the branches that have not ended and make calls. The caller holds the lock.
func (x *execution) openBranches() (open []*branch) {
	for _, b := range x.forks {
		if !b.finished && !b.scope.abandoned {
			open = append(open, b)
		}
	}
	return open
}

// unawaited returns the errors of the branches below the scope whose end no function has learned of.
func (s *scope) unawaited() error {
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	var lost []*branch
	for _, b := range x.forks {
		abandoned := b.by.abandoned || b.scope != nil && b.scope.abandoned
		if b.err != nil && !b.awaited && !abandoned && s.covers(b.by.name) {
			lost = append(lost, b)
		}
	}
	slices.SortStableFunc(lost, func(a, b *branch) int { return cmp.Compare(a.name, b.name) })
	var errs []error
	for _, b := range lost {
		errs = append(errs, fmt.Errorf("branch %q: %w", b.name, b.err))
	}
	return errors.Join(errs...)
}
