package workflow

import "runtime"

// If a run cannot continue now, each call of its function returns an error, and the function
// returns. A function that ignores the error in a loop would loop forever. So each scope counts
// its refused calls. If they exceed the capacity of a journal, the next call ends its goroutine
// with runtime.Goexit, as if the function had returned that error. The app cannot recover a
// Goexit. In a goroutine of the app, a Goexit does not end the process as a panic would.

// refuse counts a call that is not made because the run or its scope cannot continue now. The
// caller holds the lock.
func (s *scope) refuse(err error) error {
	s.refusals++
	s.refusal = err
	return err
}

// refusedIn counts a refused branch, unless it is the first with its name: a loop that begins a
// branch in each round is not refused itself. A branch that has lost a race does not count
// against the scope that began it. The caller holds the lock.
func (s *scope) refusedIn(b *branch) {
	switch refused := b.scope.refusal; {
	case refused == nil, refused == ErrAbandoned && !s.abandoned:
	case b.again:
		_ = s.refuse(refused)
	default:
		s.refusal = refused
	}
}

// spin ends the goroutine of a function after too many refused calls. It is called before a
// call, without the lock.
func (s *scope) spin() {
	s.x.mu.Lock()
	over := s.refusals > MaxEntries
	first := over && !s.spun
	s.spun = over
	refused := s.refusal
	s.x.mu.Unlock()
	if first {
		s.x.engine.opts.Logger.Warn("ended a function that kept making calls after its run stopped; "+
			"return each error of a call that is not a *StepError",
			"flow", s.x.row.Flow, "id", s.x.row.ID, "branch", s.name, "error", refused)
	}
	if over {
		runtime.Goexit()
	}
}

// obeyed returns the error that an ended function received, or nil if none was ended.
func (s *scope) obeyed() error {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if !s.spun {
		return nil
	}
	return s.refusal
}
