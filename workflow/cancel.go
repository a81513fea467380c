package workflow

import "fmt"

// Cancel abandons the branch, as a lost [Race] does: its current step is interrupted, its calls
// return [ErrAbandoned], the children it waits for are cancelled, and it gives back the signals
// that it has received and not used. The same holds for the branches below it. A branch that
// waits for another one outside still waits for its end.
//
// Cancel returns once that is durable, and does not wait for the end of the branch. A branch that
// has ended keeps its result, unless it gives back a signal. The name is the identity of the call
// in the journal.
//
// A branch cannot cancel itself, nor a branch around it: the error matches [ErrNested]. Any other
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
