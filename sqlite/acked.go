package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"sync"

	"github.com/gopawl/pawl"
	pawldriver "github.com/gopawl/pawl/driver"
)

// ackedLeases are leases that were ended within transactions of the app. It is unknown whether these
// transactions have been committed.
type ackedLeases struct {
	mu sync.Mutex
	by map[ackedLease]*acked
}

type ackedLease struct {
	id    pawl.ID
	token uint64
}

// acked is an ack in a transaction of the app, and what to do once that transaction is known to be
// committed.
type acked struct {
	lease  *pawl.Lease
	seq    int64 // of the job
	events []pawl.Event
	totals pawldriver.Totals
}

func keyOf(l *pawl.Lease) ackedLease { return ackedLease{l.ID, l.Token} }

func (a *ackedLeases) add(one *acked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by == nil {
		a.by = make(map[ackedLease]*acked)
	}
	a.by[keyOf(one.lease)] = one
}

func (a *ackedLeases) remove(id pawl.ID, token uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.by, ackedLease{id, token})
}

// all returns the leases in the order of their jobs.
func (a *ackedLeases) all() (all []*acked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.by {
		all = append(all, one)
	}
	slices.SortFunc(all, func(x, y *acked) int { return cmp.Compare(x.seq, y.seq) })
	return all
}

// noticeAcks ends the leases that transactions of the app have ended. Since one connection writes at a
// time, none of these transactions is in progress. If a transaction was rolled back, the job still has
// its lease.
func (t *txn) noticeAcks() {
	for _, one := range t.q.acked.all() {
		l, holds := one.lease, int64(0)
		t.query(`SELECT place = 4 AND token = ? FROM pawl_job WHERE seq = ?`, func(v []driver.Value) error {
			holds = number(v[0])
			return nil
		}, int64(l.Token), one.seq)
		if holds != 0 || t.settled[l.ID] {
			continue
		}
		t.settled[l.ID], t.acked[keyOf(l)] = true, true
		t.events = append(t.events, one.events...)
		t.totals.Add(one.totals)
		t.after = append(t.after, func() {
			pawldriver.MarkSettled(l)
			t.q.release(l.ID, int64(l.Token))
		})
	}
}

// Wake makes the queue look immediately for committed transactions of the app that called
// [Queue.EnqueueTx] or [Queue.AckTx]. The jobs of these transactions can then be fetched, and their
// acks count. Without Wake, the queue finds the transactions with its next poll, or with any other
// call that writes. Do not call Wake within a transaction of the app that writes: Wake would wait for
// that transaction.
func (q *Queue) Wake(ctx context.Context) error { return q.submit(ctx, tick{}) }
