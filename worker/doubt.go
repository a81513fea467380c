package worker

import (
	"iter"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// shared reports whether another process may take a job back. If only one process has the queue
// open, its leases cannot end in another way, however long it takes to extend them.
func (w *Worker) shared() bool {
	able, ok := w.queue.(driver.Able)
	return ok && able.Abilities()&pawl.Shared != 0
}

// endInDoubt is called when the earliest lease of a session may have expired. It ends the attempts
// whose leases were not extended in time: another process may have their jobs now. If such a job
// still waits for a slot, it does not start. It goes back to the queue, which may still hold its
// lease for this worker.
func (s *session) endInDoubt() {
	var runs, waiting []*attempt
	now := time.Now()
	s.mu.Lock()
	s.nextDoubt = time.Time{}
	for a := range s.held {
		switch {
		case a.claimed.Load() || driver.Settled(a.Lease) || a.until.IsZero():
			continue
		case a.until.After(now):
			s.watch(a.until)
			continue
		case s.leaveWaiting(a):
			waiting = append(waiting, a)
		case a.cancel != nil:
			runs = append(runs, a)
		}
		a.until = time.Time{}
	}
	s.mu.Unlock()
	for _, a := range runs {
		s.w.opts.Logger.Warn("lease is in doubt, because no extension came back before its end; the handler's context ends",
			"id", a.ID, "kind", a.Kind, "attempt", a.Attempt())
		a.cancel(ErrLeaseInDoubt)
	}
	s.release(waiting)
}

// watch schedules a call of endInDoubt at a time, or earlier. The caller holds mu.
func (s *session) watch(until time.Time) {
	if s.nextDoubt.IsZero() || until.Before(s.nextDoubt) {
		s.nextDoubt = until
		s.doubtTimer.Reset(time.Until(until))
	}
}

// extended records when leases expire after a call that began at the given time and extended
// them. A lease in doubt stays in doubt: its attempt has been ended.
func (s *session) extended(attempts iter.Seq[*attempt], began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range attempts {
		if !a.until.IsZero() {
			a.until = began.Add(a.Length)
		}
	}
}
