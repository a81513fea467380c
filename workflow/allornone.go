package workflow

import "fmt"

// AllOrNone waits until all branches have ended without an error, and returns their results in the
// order of the branches. When the first of them fails, it abandons the others, as [Branch.Cancel]
// does, and returns that error with the name of its branch. The name is the identity of the call in
// the journal, which remembers which branch failed first.
func AllOrNone[T any](r *Run, name string, branches ...*Branch[T]) ([]T, error) {
	all := make([]*branch, len(branches))
	for i, b := range branches {
		all[i] = b.branch
	}
	failed, err := r.s.allOrNone(name, all)
	if err != nil {
		return nil, err
	}
	if failed >= 0 {
		_, err := branches[failed].result()
		return nil, fmt.Errorf("branch %q: %w", branches[failed].name, err)
	}
	out := make([]T, len(branches))
	for i, b := range branches {
		out[i] = b.out
	}
	return out, nil
}

// allOrNone returns which branch failed first, or -1. A failure is decided like a race that the
// failed branch has won. A success needs no commit: after a crash, all branches end in the same way.
func (s *scope) allOrNone(name string, all []*branch) (failed int, err error) {
	c, err := s.begin(KindAll, name, nil)
	if err != nil {
		return -1, err
	}
	defer c.end()
	won := raceResult{Winner: -1, Branches: namesOf(all)}
	if c.known {
		won, err = c.decided(-1, all)
	} else {
		err = s.await(func() bool {
			open := len(all)
			for i, b := range all {
				if !b.finished || b.losing {
					continue
				}
				if open--; won.Winner < 0 && b.failed() {
					won.Winner = i
				}
			}
			return won.Winner >= 0 || open == 0
		})
	}
	switch {
	case err != nil:
		return -1, err
	case won.Winner >= 0 && c.known:
		return won.Winner, s.await(func() bool { return s.follows(all[won.Winner]) })
	case won.Winner >= 0:
		return won.Winner, c.decide(&won, all, "a branch beside the one that started it has failed")
	}
	for _, b := range all {
		if err := s.await(func() bool { return s.follows(b) }); err != nil {
			return -1, err
		}
	}
	if c.known {
		return -1, nil
	}
	if err := c.refused(); err != nil {
		return -1, err
	}
	result, err := encode("the result of AllOrNone", &won)
	if err != nil {
		return -1, err
	}
	c.e.finish(result, s.x.engine.now())
	s.x.later(c.e)
	return -1, nil
}

// failed reports whether a branch that has ended has no result. The caller holds the lock.
func (b *branch) failed() bool {
	return b.err != nil || b.scope != nil && (b.scope.cut || b.scope.gaveBack())
}
