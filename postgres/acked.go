package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// ackedLeases are leases that were acked within transactions of the app. It is unknown whether these
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
	events []pawl.Event
	totals driver.Totals
	xid    int64     // ID of the transaction
	until  time.Time // the ack is forgotten after this monotonic time
}

func keyOf(l *pawl.Lease) ackedLease { return ackedLease{l.ID, l.Token} }

// add records an ack, and forgets the acks that no call has looked up for twice the length of a lease.
func (a *ackedLeases) add(one *acked, length time.Duration) {
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
	one.until = now.Add(2 * length)
	a.by[keyOf(one.lease)] = one
}

// find returns the recorded acks of leases, and keeps them for twice the length of a lease from now.
func (a *ackedLeases) find(leases []*pawl.Lease, length time.Duration) (found []*acked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	until := time.Now().Add(2 * length)
	for _, l := range leases {
		if one := a.by[keyOf(l)]; one != nil {
			one.until = until
			found = append(found, one)
		}
	}
	return found
}

func (a *ackedLeases) remove(id pawl.ID, token uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.by, ackedLease{id, token})
}

func (a *ackedLeases) leases() (all []*pawl.Lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.by {
		all = append(all, one.lease)
	}
	return all
}

// sqlAcked numbers, from 1, the jobs $1 that transactions $2 have acked and committed: the job is gone,
// or completed. It waits for no lock. After a failover, the server may not know a transaction that is
// newer than its own ones.
const sqlAcked = `SELECT n.nth FROM unnest($1::uuid[], $2::int8[]) WITH ORDINALITY AS n(id, xid, nth)
WHERE CASE WHEN n.xid::text::xid8 < pg_snapshot_xmax(pg_current_snapshot())
		THEN pg_xact_status(n.xid::text::xid8) = 'committed' END
	AND NOT EXISTS (SELECT FROM pawl.job j WHERE j.id = n.id AND j.place <> 4)`

// wereAcked reports which leases were acked in transactions of the app that have been committed. After
// the commit of t, it carries out what follows from these acks.
func (t *txn) wereAcked(leases ...*pawl.Lease) (map[ackedLease]bool, error) {
	found := t.q.acked.find(leases, t.q.opts.Lease)
	if len(found) == 0 {
		return nil, nil
	}
	var ids []pawl.ID
	var xids []int64
	for _, one := range found {
		ids, xids = append(ids, one.lease.ID), append(xids, one.xid)
	}
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlAcked), uuids(ids), xids)
	if err != nil {
		return nil, err
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, err
	}
	were := make(map[ackedLease]bool)
	for _, nth := range numbers {
		one := found[nth-1]
		were[keyOf(one.lease)] = true
		t.noteAcked(one)
	}
	return were, nil
}

// noteAcked records that a transaction of the app has ended a lease.
func (t *txn) noteAcked(one *acked) {
	l := one.lease
	if t.settled[l.ID] {
		return
	}
	t.settled[l.ID] = true
	t.events = append(t.events, one.events...)
	t.totals.Add(one.totals)
	t.after = append(t.after, func() {
		driver.MarkSettled(l)
		t.q.acked.remove(l.ID, l.Token)
		t.q.release(l.ID, int64(l.Token))
	})
}

// Wake makes the queue look immediately for committed transactions of the app that called
// [Queue.EnqueueTx] or [Queue.AckTx]. The jobs of these transactions can then be fetched, and their
// acks count. Without Wake, the queue finds the jobs with its next poll. Wake does not wait for
// transactions that are still open.
func (q *Queue) Wake(ctx context.Context) error { return q.submit(ctx, &wake{q.acked.leases()}) }

// wake is a call of Wake.
type wake struct{ leases []*pawl.Lease }

func (op *wake) needs(*needs) {}

func (op *wake) apply(t *txn) error {
	if _, err := t.wereAcked(op.leases...); err != nil {
		return err
	}
	t.stir()
	t.news.any = true
	t.FallsDue(time.Time{}) // a job of the transaction may be due before all others
	return nil
}
