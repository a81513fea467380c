package bolt

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: in a function of Update, and in any transaction of an app with the queue in its own
// database, a mutation is committed or undone with the rest of the transaction. Its events and
// the end of its lease are reported after the commit.
func TestMutateTxIsPartOfTheTransaction(t *testing.T) {
	type place struct {
		name string
		open func(t *testing.T, opts *Options) *Queue
		in   func(t *testing.T, q *Queue, end error, fn func(*bbolt.Tx))
	}
	for _, where := range []place{
		{"Update", openTest, inTx},
		{"a transaction of the app's", func(t *testing.T, opts *Options) *Queue { return openOver(t, openApp(t), opts) },
			func(t *testing.T, q *Queue, end error, fn func(*bbolt.Tx)) { updateApp(t, q.db, end, fn) }},
	} {
		for _, c := range opsVerbs {
			for _, end := range []error{nil, errRolledBack} {
				t.Run(fmt.Sprint(where.name, ", ", c.name, ", ", end), func(t *testing.T) {
					q := where.open(t, nil)
					s := newStand(t, q)
					var events eventLog
					defer q.Listen(events.event)()
					before := digest(t, q)
					where.in(t, q, end, func(tx *bbolt.Tx) {
						require.NoError(t, appPut(tx, "app"))
						r := riding("mutation", func(p *ops) error { return c.plan(p, s) })
						require.NoError(t, q.MutateTx(tx, r))
						require.NotNil(t, tx.Bucket(appBucket).Get([]byte("mutation")))
						require.Empty(t, events.take(), "nothing is committed yet")
						require.False(t, driver.Settled(s.lease))
						require.Equal(t, before, digest(t, q), "nor to be seen")
					})
					settled(t, q)
					if end != nil {
						require.Equal(t, before, digest(t, q))
						require.Empty(t, appRows(t, q.db))
						require.Empty(t, events.take())
						require.False(t, driver.Settled(s.lease))
						require.NoError(t, q.Settle(t.Context(), s.lease.Ack()))
						return
					}
					require.Equal(t, []string{"app", "mutation"}, appRows(t, q.db))
					require.Equal(t, c.want, countsOf(t, q, pawl.DefaultQueue))
					require.Equal(t, c.events, events.take())
					require.Equal(t, c.settled, driver.Settled(s.lease))
					require.NoError(t, q.do(t.Context(), visit(func() {
						require.Equal(t, !c.settled, q.scheduler.leases.byToken.get(s.lease.Token) != nil, "the queue knows which leases ended")
					})))
					checkNow(t, q)
				})
			}
		}
	}
}

// Rule: after an error of Check the transaction continues unchanged, even with another
// mutation. An error of Apply is returned unchanged, so that the function can return it.
func TestMutateTxRefused(t *testing.T) {
	q := openTest(t, nil)
	s := newStand(t, q)
	plan := func(p *ops) error { return p.Ack(s.lease) }
	inTx(t, q, nil, func(tx *bbolt.Tx) {
		require.True(t, q.MutateTx(tx, refusing("Check", riding("refused", plan), errBoom)) == errBoom)
		require.NoError(t, q.MutateTx(tx, riding("one", plan)))
		require.NoError(t, q.MutateTx(tx, riding("two", func(p *ops) error {
			if txOf(p).Bucket(appBucket).Get([]byte("one")) == nil {
				return errBoom
			}
			return p.RunNow(s.delayed)
		})))
	})
	require.Equal(t, []string{"one", "two"}, appRows(t, q.db))
	require.Equal(t, pawl.Counts{Ready: 1, Delayed: 1, Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
	require.True(t, driver.Settled(s.lease))

	before := digest(t, q)
	require.True(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		return q.MutateTx(tx, refusing("Apply", riding("three", func(p *ops) error { return p.Retry(s.dead) }), errBoom))
	}) == errBoom)
	require.Equal(t, before, digest(t, q))
	require.Equal(t, []string{"one", "two"}, appRows(t, q.db))
}

// Rule: in an app's transaction a mutation runs on the app's goroutine, so a panic surfaces
// there, undoes the transaction, and does not harm the queue.
func TestMutateTxOfAMutationThatPanics(t *testing.T) {
	q := openTest(t, nil)
	s := newStand(t, q)
	before := digest(t, q)
	for _, r := range []*ride{
		{check: func(*ops) error { panic("boom") }},
		{check: func(p *ops) error { return p.Ack(s.lease) }, apply: func(tx *bbolt.Tx) error {
			require.NoError(t, appPut(tx, "row"))
			panic("boom")
		}},
	} {
		require.PanicsWithValue(t, "boom", func() {
			_ = q.Update(t.Context(), func(tx *bbolt.Tx) error { return q.MutateTx(tx, r) })
		})
		require.Equal(t, before, digest(t, q))
		require.Empty(t, appRows(t, q.db))
		require.False(t, driver.Settled(s.lease))
	}
	require.NoError(t, q.Settle(t.Context(), s.lease.Ack()))
}

// Rule: a mutation is refused without a call if there is no transaction to write in.
func TestMutateTxOfTheWrongSort(t *testing.T) {
	q, other := openTest(t, nil), openTest(t, nil)
	never := &ride{}
	var over *bbolt.Tx
	inTx(t, q, nil, func(tx *bbolt.Tx) { over = tx })
	reading, err := q.db.Begin(false)
	require.NoError(t, err)
	defer func() { _ = reading.Rollback() }()
	inTx(t, other, nil, func(foreign *bbolt.Tx) {
		for _, tx := range []*bbolt.Tx{over, reading, foreign} {
			require.ErrorIs(t, q.MutateTx(tx, never), pawl.ErrInvalid)
		}
	})
	require.Zero(t, never.checks)
}

// Rule: a closed queue accepts no mutation, neither by itself nor in an app's transaction whose
// database stays open. A mutation in a running function of Update is committed.
func TestMutateTxAndClose(t *testing.T) {
	db := openApp(t)
	q := openOver(t, db, nil)
	require.NoError(t, q.Close())
	never := &ride{}
	updateApp(t, db, nil, func(tx *bbolt.Tx) { require.ErrorIs(t, q.MutateTx(tx, never), pawl.ErrClosed) })
	require.ErrorIs(t, q.Mutate(t.Context(), never, 0), pawl.ErrClosed)
	require.Zero(t, never.checks)

	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir() + "/jobs.db"
		q := openAt(t, path, nil)
		var closed <-chan error
		inTx(t, q, nil, func(tx *bbolt.Tx) {
			closed = started(q.Close)
			synctest.Wait()
			require.ErrorIs(t, q.Mutate(t.Context(), never, 0), pawl.ErrClosed)
			require.NoError(t, q.MutateTx(tx, riding("row", func(p *ops) error { return withid.EnqueueOps(p, &pawl.Envelope{Kind: "k"}) })))
		})
		require.NoError(t, <-closed)
		q = openAt(t, path, nil)
		require.Equal(t, []string{"row"}, appRows(t, q.db))
		require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
	})
}

// Hold extends a lease in an app's transaction too.
func TestHoldInATransactionExtends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		id := add(t, q, nil).ID
		l := leaseOne(t, q)
		pass(q.opts.Lease - 1)
		inTx(t, q, nil, func(tx *bbolt.Tx) {
			require.NoError(t, q.MutateTx(tx, riding("row", func(p *ops) error { return p.Hold(l) })))
		})
		pass(2)
		synctest.Wait()
		require.Equal(t, pawl.Leased, find(t, q, id).State)
	})
}

// Rule: a job that waits for the idempotency key of another is unblocked if an app's transaction ends the lease of that
// job and finds its record damaged.
func TestMutateTxOfADamagedHolder(t *testing.T) {
	q := openTest(t, nil)
	keyed := func(e *pawl.Envelope) { e.IdempotencyKey = "key" }
	holder, next := add(t, q, keyed), add(t, q, keyed)
	l := leaseOne(t, q)
	require.Equal(t, holder.ID, l.ID)
	require.Empty(t, fetch(t, q, 1))
	require.Equal(t, 1, countsOf(t, q, pawl.DefaultQueue).Blocked)
	damageRecord(t, q, l.ID, missing.change)
	inTx(t, q, nil, func(tx *bbolt.Tx) {
		require.NoError(t, q.MutateTx(tx, &ride{check: func(p *ops) error { return p.Snooze(l, p.Now().Add(time.Hour)) }}))
	})
	settled(t, q)
	require.Equal(t, next.ID, leaseOne(t, q).ID)
	require.NoError(t, q.Delete(t.Context(), holder.ID))
}
