package bolt

import (
	"slices"

	"github.com/gopawl/pawl"
)

// serve gives a fetch its jobs, or an error such as ErrEmpty; or leaves it waiting.
func (s *scheduler) serve(t *txn, f *fetchCall) {
	if f.stage.Load() == withdrawn {
		return
	}
	f.jobs, f.err, f.served = nil, nil, false // a transaction before may have failed
	var chosen []choice
	for len(f.jobs) == 0 {
		var err error
		allow := allowance{f.request.Max - f.request.Ahead, s.leases.repeatFree(t)}
		chosen, err = t.pick(&f.request, &s.turns, allow)
		if err == nil && len(chosen) == 0 && !s.backlog { // of a backlog it may get something yet
			err = t.givesUp(&f.request)
		}
		if err != nil {
			if f.accept() {
				f.err, f.served = err, true
			}
			return
		}
		if len(chosen) == 0 {
			return
		}
		chosen, f.jobs = t.copyOut(chosen)
	}
	if !f.accept() {
		return
	}
	f.served = true
	t.lend(chosen, f.jobs)
}

// givesUp returns ErrEmpty when a fetch that found nothing does not want to wait
// for what the queues still hold.
func (t *txn) givesUp(r *pawl.Request) error {
	switch r.Wait {
	case pawl.WaitForJob:
		return nil
	case pawl.WaitNot:
		return pawl.ErrEmpty
	}
	for _, name := range r.Queues {
		n, ok, err := t.number(name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if c := t.counts(n); c.Ready > 0 || c.Leased > 0 || r.Wait == pawl.WaitFinished && c.Delayed > 0 {
			return nil
		}
	}
	return pawl.ErrEmpty
}

// answerFetches answers the fetches that a durable transaction served, and lets go
// of those that were withdrawn.
func (s *scheduler) answerFetches() {
	s.fetches = slices.DeleteFunc(s.fetches, func(f *fetchCall) bool {
		if f.served {
			f.expires = s.durable.Add(s.leases.length)
			f.answer(f.err)
		}
		return f.served || f.stage.Load() == withdrawn
	})
}

// failFetches answers the fetches that a failed transaction had accepted.
func (s *scheduler) failFetches(err error) {
	s.fetches = slices.DeleteFunc(s.fetches, func(f *fetchCall) bool {
		if f.stage.Load() != accepted {
			return false
		}
		f.answer(err)
		return true
	})
}
