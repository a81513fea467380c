package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Settle implements [pawl.Queue].
func (q *Queue) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if err := driver.CheckSettle(settlements); err != nil {
		return err
	}
	if err := driver.SupportsSettle(abilities, settlements); err != nil {
		return err
	}
	op := &settle{settlements: settlements, failures: make([]pawl.Failure, len(settlements)), errs: make([]error, len(settlements))}
	for i := range settlements {
		op.failures[i] = driver.FailureOf(settlements[i].Cause)
	}
	if err := q.submit(ctx, op); err != nil {
		return err
	}
	return driver.SettleErrors(settlements, op.errs)
}

// settle is a call of Settle.
type settle struct {
	settlements []pawl.Settlement
	failures    []pawl.Failure
	errs        []error
}

func (op *settle) apply(t *txn) error {
	for i := range op.settlements {
		op.errs[i] = t.end(&op.settlements[i], op.failures[i])
	}
	return nil
}

// end ends one lease, unless it is stale.
func (t *txn) end(s *pawl.Settlement, failure pawl.Failure) error {
	j, err := t.leased(s.Lease)
	if err != nil {
		if t.acked[keyOf(s.Lease)] {
			return nil // a transaction of the app has settled it
		}
		return err
	}
	t.End(j, s, failure)
	return nil
}

// leased returns the job of a lease, if the job still has the token of the lease.
func (t *txn) leased(l *pawl.Lease) (*job, error) {
	if t.app {
		j := t.Get(l.ID)
		if j == nil || j.State != pawl.Leased || uint64(j.token) != l.Token {
			return nil, fmt.Errorf("job %s: %w", l.ID, pawl.ErrLeaseLost)
		}
		return j, nil
	}
	h := t.holds(l)
	if h == nil {
		return nil, fmt.Errorf("job %s: %w", l.ID, pawl.ErrLeaseLost)
	}
	j := *h.job
	j.Cancelled = j.Cancelled || t.cancelled[l.ID]
	if t.sound[l.ID] {
		j.Crashes = 0
	}
	if cursor := t.saved[l.ID]; cursor != nil {
		j.Cursor = cursor
	}
	return &j, nil
}

// holds returns what the scheduler knows about a lease, nil if the lease is lost.
func (t *txn) holds(l *pawl.Lease) *held {
	h := t.q.held[l.ID]
	if h == nil || uint64(h.token) != l.Token || t.settled[l.ID] {
		return nil
	}
	return h
}

// Extend implements [pawl.Queue].
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	op := &extend{leases: leases}
	if err := q.submit(ctx, op); err != nil {
		return nil, err
	}
	return op.lost, nil
}

// extend is a call of Extend. It writes nothing: when a process ends, the next Open takes back
// all of its leases.
type extend struct {
	leases, lost []*pawl.Lease
}

func (op *extend) apply(t *txn) error {
	op.lost = nil
	for _, l := range op.leases {
		if h := t.holds(l); h != nil {
			t.extend(l.ID, h)
		} else if !t.acked[keyOf(l)] {
			op.lost = append(op.lost, l)
		}
	}
	return nil
}

// extend makes a lease last for its full length from now.
func (t *txn) extend(id pawl.ID, h *held) {
	t.extended[id] = true
	t.after = append(t.after, func() { h.expires = t.expiry() })
}

// expiry returns when a lease that begins or is extended now expires.
func (t *txn) expiry() time.Time { return t.mono.Add(t.q.opts.Lease) }

// Reap implements [pawl.Queue].
func (q *Queue) Reap(ctx context.Context) (int, error) {
	op := new(reap)
	if err := q.submit(ctx, op); err != nil {
		return 0, err
	}
	return op.reaped, nil
}

// reap is a call of Reap. Every transaction takes back expired leases, so reap only counts
// them.
type reap struct{ reaped int }

func (op *reap) apply(t *txn) error {
	t.after = append(t.after, func() { op.reaped, t.reaped = t.reaped, 0 })
	return nil
}
