package workflow

import "runtime"

// A function whose run does not go on now is told so by each of its calls, and returns. One that
// swallows that error in a loop would go on for ever. So calls that are refused are counted, for
// each scope, and behind one more than a journal has room for the goroutine that makes the next
// is ended, and counts as if its function had returned what it was told: by runtime.Goexit, which
// no recover of the app's catches, and which in a goroutine of the app's own does not end the
// process as a panic would.

// refuse counts a call that is not made because the run, or its scope, does not go on now. The
// caller holds the lock.
func (s *scope) refuse(err error) error {
	s.refusals++
	s.refusal = err
	return err
}

// refusedIn counts a branch that was told so, when it is not the first of its name: a loop that
// begins one in each round is refused nothing itself. That a branch has lost a race says nothing
// of who began it. The caller holds the lock.
func (s *scope) refusedIn(b *branch) {
	switch told := b.scope.refusal; {
	case told == nil, told == ErrAbandoned && !s.abandoned:
	case b.again:
		_ = s.refuse(told)
	default:
		s.refusal = told
	}
}

// spin ends the goroutine of a function that has been refused too many calls. It is called
// before a call, without the lock.
func (s *scope) spin() {
	s.x.mu.Lock()
	over := s.refusals > MaxEntries
	first := over && !s.spun
	s.spun = over
	told := s.refusal
	s.x.mu.Unlock()
	if first {
		s.x.engine.opts.Logger.Warn("a function goes on without end after it was told that its run does not, and is ended; "+
			"have it return the error of a call that is not a *StepError",
			"flow", s.x.row.Flow, "id", s.x.row.ID, "branch", s.name, "error", told)
	}
	if over {
		runtime.Goexit()
	}
}

// heeded is what a function that was ended was told, nil if none was.
func (s *scope) heeded() error {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if !s.spun {
		return nil
	}
	return s.refusal
}
