package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
)

// Queue is the queue under test: a bolt.Queue, or a queue with a planted fault.
type Queue interface {
	pawl.Queue
	Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error
	Cancel(ctx context.Context, id pawl.ID) error
	Delete(ctx context.Context, id pawl.ID) error
	Pause(ctx context.Context, queue string) error
	Resume(ctx context.Context, queue string) error
	Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error]
	Check(ctx context.Context) error
	Close() error
}

// tap records all calls of a worker, or of the simulation itself, to the queue of a process.
// It delays or refuses them as the case says.
type tap struct {
	*process
	worker *hand // nil for the simulation itself
}

var _ pawl.Queue = (*tap)(nil)

// enter waits while the worker is stalled.
func (t *tap) enter(ctx context.Context) error {
	for t.worker != nil {
		wait := time.Until(t.worker.stalledUntil())
		if wait <= 0 {
			break
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return driver.NotAccepted(ctx)
		case <-t.gone:
			return pawl.ErrClosed
		}
	}
	if t.worker != nil && now() < t.world.refusing.Load() {
		return fmt.Errorf("%w: as the case wants", bolt.ErrDisk)
	}
	return nil
}

// call makes and records a call. Each record gets the answer of the call, unless answer
// changes it.
func (t *tap) call(ctx context.Context, do func() error, answer func(error), records ...*record) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	h := &t.world.history
	if err := h.begin(t.process, records...); err != nil {
		return err
	}
	err := do()
	dead := h.end(t.process, func() {
		for _, r := range records {
			r.err = err
		}
		if answer != nil {
			answer(err)
		}
	}, records...)
	if dead != nil {
		return dead
	}
	return err
}

// of returns a record about the job of a lease.
func (t *tap) of(what string, l *pawl.Lease) *record {
	return &record{what: what, job: t.world.numberOf(l.ID), token: l.Token, held: t.worker == nil, by: t.worker}
}

// ends returns a record of a call that ends a lease.
func (t *tap) ends(what string, l *pawl.Lease) *record {
	if t.worker != nil {
		t.world.decided(l.Token)
	}
	return t.of(what, l)
}

// Enqueue implements [pawl.Enqueuer]. The simulation does not use it.
func (t *tap) Enqueue(context.Context, ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	panic("nobody enqueues by a tap")
}

// Fetch implements [pawl.Queue].
func (t *tap) Fetch(ctx context.Context, r pawl.Request) (leases []*pawl.Lease, err error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	h, f := &t.world.history, &fetch{request: r, open: true}
	if err := h.begin(t.process); err != nil {
		return nil, err
	}
	h.mu.Lock()
	begin := h.place
	h.fetches = append(h.fetches, f)
	h.mu.Unlock()
	leases, err = t.q.Fetch(ctx, r)
	dead := h.end(t.process, func() {
		f.open, f.at = false, now()
		for _, l := range leases {
			rec := t.of("lease", l)
			rec.begin, rec.end, rec.at = begin, h.place, l.Expires.Add(-l.Length).UnixNano()
			rec.attempts, rec.crashes, rec.fetch = l.Attempts, l.Crashes, f
			f.leases = append(f.leases, rec)
			h.records = append(h.records, rec)
		}
	})
	if dead != nil {
		return nil, dead
	}
	return leases, err
}

// Settle implements [pawl.Queue].
func (t *tap) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	records := make([]*record, len(settlements))
	for i, s := range settlements {
		r := t.ends(string(s.Outcome), s.Lease)
		r.delay, r.reason = s.Delay, s.Reason
		if s.Cause != nil {
			r.cause = s.Cause.Error()
		}
		r.ran = s.Outcome == pawl.OutcomeSnooze && !s.Lease.Started.IsZero()
		records[i] = r
	}
	return t.call(ctx, func() error { return t.q.Settle(ctx, settlements...) }, func(err error) {
		var part *pawl.SettleError
		if errors.As(err, &part) {
			for i, s := range settlements {
				records[i].err = part.Failed[s.Lease]
			}
		}
	}, records...)
}

// Extend implements [pawl.Queue].
func (t *tap) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	records := make([]*record, len(leases))
	for i, l := range leases {
		records[i] = t.of("extend", l)
	}
	err = t.call(ctx, func() (err error) {
		lost, err = t.q.Extend(ctx, leases...)
		return err
	}, func(err error) {
		for _, l := range lost {
			for i := range leases {
				if leases[i] == l {
					records[i].err = pawl.ErrLeaseLost
				}
			}
		}
	}, records...)
	return lost, err
}

// Reap implements [pawl.Queue].
func (t *tap) Reap(ctx context.Context) (n int, err error) {
	err = t.call(ctx, func() (err error) {
		n, err = t.q.Reap(ctx)
		return err
	}, nil)
	return n, err
}
