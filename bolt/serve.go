package bolt

import (
	"errors"
	"slices"

	"github.com/gopawl/pawl"
)

// serve gives a fetch its jobs or an error such as ErrEmpty, or leaves it waiting. Room is how
// many more jobs of this transaction may turn out not to be leasable.
func (s *scheduler) serve(t *txn, f *fetchCall, room *int) {
	if f.stage.Load() == withdrawn {
		return
	}
	f.jobs, f.err, f.served = nil, nil, false // an earlier transaction may have failed
	repeatFree := s.leases.repeatFree(t)
	if !f.watchList.due(repeatFree) {
		return
	}
	asked, err := s.looking(t, f)
	kinds, all, kindErr := s.kindsOf(t, &f.request)
	chosen := selection{
		t: t, request: &f.request, asked: asked, kinds: kinds, all: all, turns: &s.turns, spare: &s.spare, room: room,
		allow: allowance{f.request.Max - f.request.Ahead, repeatFree},
	}
	turnsBefore := len(s.turns.taken)
	if err = errors.Join(err, kindErr); err == nil {
		err = chosen.run()
	}
	if *room == 0 || t.leftBlocked || t.groups.Any() || t.after.Pending() { // the ends of skipped jobs bring callbacks and release jobs
		s.backlog = true
	}
	if err == nil && len(chosen.jobs) == 0 {
		if s.backlog { // some of the due jobs may be for this fetch
			return
		}
		err = s.givesUp(t, f, &chosen)
	}
	switch {
	case err == nil && len(chosen.jobs) == 0: // the fetch continues to wait
		f.watchList.looked, f.watchList.held = true, chosen.held
	case !f.accept():
		s.turns.undo(turnsBefore)
	case err != nil:
		f.err, f.served = err, true
	default:
		f.jobs, f.served, f.at = chosen.jobs, true, t.now
		t.grantJobs(f.jobs, s.leases)
	}
}

// givesUp returns ErrEmpty if a fetch that found nothing does not want to wait for the
// remaining jobs of its queues. It first looks at the queue that made the fetch wait last
// time.
func (s *scheduler) givesUp(t *txn, f *fetchCall, chosen *selection) error {
	r := &f.request
	switch r.Wait {
	case pawl.WaitForJob:
		return nil
	case pawl.WaitNot:
		return pawl.ErrEmpty
	}
	for range r.Queues {
		n, ok, err := s.numbers.queue(t, r.Queues[f.watchList.holdout])
		if err != nil {
			return err
		}
		if ok {
			if left, err := chosen.left(n, r.Wait == pawl.WaitFinished); err != nil || left {
				return err
			}
		}
		f.watchList.holdout = (f.watchList.holdout + 1) % len(r.Queues)
	}
	return pawl.ErrEmpty
}

// answerFetches answers the fetches that a durable transaction served, and drops withdrawn
// ones.
func (s *scheduler) answerFetches() {
	s.fetches = slices.DeleteFunc(s.fetches, func(f *fetchCall) bool {
		if f.served {
			f.durable = s.durable
			f.answer(f.err)
		}
		return f.served || f.stage.Load() == withdrawn
	})
}

// failFetches answers the fetches that a failed transaction had accepted.
func (s *scheduler) failFetches(err error) {
	s.answerWith(err, func(f *fetchCall) bool { return f.stage.Load() == accepted })
}

// failHasty answers the fetches with a limit on their wait. Due jobs cannot be moved, so it is
// unknown whether these fetches would find the queues empty.
func (s *scheduler) failHasty(err error) {
	s.answerWith(err, func(f *fetchCall) bool { return f.request.Wait != pawl.WaitForJob && f.accept() })
}

func (s *scheduler) answerWith(err error, concerned func(*fetchCall) bool) {
	s.fetches = slices.DeleteFunc(s.fetches, func(f *fetchCall) bool {
		if !concerned(f) {
			return false
		}
		f.answer(err)
		return true
	})
}
