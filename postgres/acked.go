package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// ackedLeases are leases that were acked within transactions of the app, of which nobody knows yet
// whether they have been committed.
type ackedLeases struct {
	mu sync.Mutex
	by map[ackedLease]*acked
}

type ackedLease struct {
	id    pawl.ID
	token uint64
}

// acked is what happens once the transaction is known to be committed.
type acked struct {
	lease  *pawl.Lease
	events []pawl.Event
	until  time.Time // nobody asks after that, on monotonic time
}

func keyOf(l *pawl.Lease) ackedLease { return ackedLease{l.ID, l.Token} }

// add notes an ack, and forgets those of which nobody has asked for two lengths of a lease.
func (a *ackedLeases) add(l *pawl.Lease, events []pawl.Event, length time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for key, old := range a.by {
		if old.until.Before(now) {
			delete(a.by, key)
		}
	}
	if a.by == nil {
		a.by = make(map[ackedLease]*acked)
	}
	a.by[keyOf(l)] = &acked{l, events, now.Add(2 * length)}
}

// find returns the ack of a lease, nil if there is none, and keeps it for another two lengths.
func (a *ackedLeases) find(l *pawl.Lease, length time.Duration) *acked {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.by[keyOf(l)]
	if found != nil {
		found.until = time.Now().Add(2 * length)
	}
	return found
}

func (a *ackedLeases) remove(l *pawl.Lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.by, keyOf(l))
}

func (a *ackedLeases) leases() (all []*pawl.Lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.by {
		all = append(all, one.lease)
	}
	return all
}

// wasAcked reports whether a lease whose token counts no longer was acked in a transaction of the
// app, which has been committed then: the job is gone, or completed. The rest follows the commit of t.
func (t *txn) wasAcked(l *pawl.Lease) bool {
	found := t.q.acked.find(l, t.q.opts.Lease)
	if found == nil {
		return false
	}
	if j := t.get(l.ID); j != nil && j.State != pawl.Completed {
		return false
	}
	if !t.settled[l.ID] {
		t.settled[l.ID] = true
		t.events = append(t.events, found.events...)
		t.after = append(t.after, func() {
			driver.MarkSettled(found.lease)
			t.q.acked.remove(l)
			t.q.release(l.ID, int64(l.Token))
		})
	}
	return true
}

// wasAckedMeanwhile is wasAcked of a lease whose job may not have been read.
func (t *txn) wasAckedMeanwhile(l *pawl.Lease) (bool, error) {
	if t.q.acked.find(l, t.q.opts.Lease) == nil {
		return false, nil
	}
	if _, err := t.load([]pawl.ID{l.ID}); err != nil {
		return false, err
	}
	return t.wasAcked(l), nil
}

// Wake tells the queue that a transaction of the app has been committed in which [Queue.EnqueueTx] or
// [Queue.AckTx] was called. Jobs are fetched at once, and acks count at once. Without it the queue
// finds the jobs with its next poll.
func (q *Queue) Wake(ctx context.Context) error { return q.submit(ctx, &wake{q.acked.leases()}) }

// wake is a call of Wake.
type wake struct{ leases []*pawl.Lease }

func (op *wake) needs(n *needs) {
	for _, l := range op.leases {
		n.ids = append(n.ids, l.ID)
	}
}

func (op *wake) apply(t *txn) error {
	for _, l := range op.leases {
		if _, err := t.leased(l); err != nil {
			t.wasAcked(l)
		}
	}
	t.stir()
	t.fallsDue(time.Time{}) // a job of the transaction may be due before all others
	return nil
}
