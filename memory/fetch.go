package memory

import (
	"context"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// fetch is a call of Fetch that waits for its answer.
type fetch struct {
	pawl.Request
	leases []*pawl.Lease
	err    error
	done   chan struct{} // closed when the call is answered
}

func (f *fetch) answer(err error) {
	f.err = err
	close(f.done)
}

// Fetch implements [pawl.Queue].
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	r, err := driver.CheckRequest(r)
	if err != nil {
		return nil, err
	}
	f := &fetch{Request: r, done: make(chan struct{})}
	err = q.do(ctx, func() error { // this serves it if it can be served now
		q.waiting = append(q.waiting, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		if q.withdraw(f) {
			return nil, driver.NotAccepted(ctx)
		}
	}
	return f.leases, f.err
}

// withdraw removes a waiting fetch. It returns false if the fetch was answered.
func (q *Queue) withdraw(f *fetch) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, f)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// serve answers the waiting fetches, in their order, if there are jobs for them or
// they give up.
func (q *Queue) serve() {
	q.waiting = slices.DeleteFunc(q.waiting, func(f *fetch) bool {
		lines := q.named(f.Queues)
		for idle := f.Max - f.Ahead; len(f.leases) < f.Max; {
			j := q.next(lines, f, idle > 0)
			if j == nil {
				break
			}
			if j.Crashes > 0 {
				idle--
			}
			f.leases = append(f.leases, q.grant(j))
		}
		switch {
		case len(f.leases) > 0:
			q.report()
			f.answer(nil)
		case !q.unfinished() && f.givesUp(lines): // skipped jobs have ended, which may bring callbacks and meet prerequisites
			q.report()
			f.answer(pawl.ErrEmpty)
		default:
			return false
		}
		return true
	})
}

// named returns the queues with these names that ever had a job.
func (q *Queue) named(names []string) (lines []*line) {
	for _, name := range names {
		if l := q.find(name); l != nil {
			lines = append(lines, l)
		}
	}
	return lines
}

// grant leases a ready job. A lease has neither its state nor its history.
func (q *Queue) grant(j *job) *pawl.Lease {
	q.take(j)
	q.tokens++
	j.token, j.signal = q.tokens, new(driver.Cancellation)
	j.LeasedSince = q.moves.Now
	q.lease(j)
	j.line.start(j, q.moves.Now)
	q.run(j)
	fetched := pawl.Event{Type: pawl.EventFetched}
	if !j.BackoffSince.IsZero() {
		fetched.Backoff = q.moves.Now.Sub(j.BackoffSince)
	}
	txn{q}.Emit(j, fetched)
	e := j.copy()
	e.State, e.LeasedSince, e.History, e.HoldsKey, e.FairTag = "", time.Time{}, nil, false, 0
	return &pawl.Lease{Envelope: e, Token: j.token, Length: q.opts.Lease, Expires: j.expires, Cancelled: j.signal}
}

// givesUp reports whether a fetch for which there is no job should not wait for
// what the queues still hold.
func (f *fetch) givesUp(lines []*line) bool {
	switch f.Wait {
	case pawl.WaitForJob:
		return false
	case pawl.WaitNot:
		return true
	}
	return !slices.ContainsFunc(lines, func(l *line) bool {
		for kind, c := range l.kinds {
			if driver.Wants(&f.Request, kind) && (c.Ready > 0 || c.Leased > 0 || f.Wait == pawl.WaitFinished && c.Delayed > 0) {
				return true
			}
		}
		return false
	})
}
