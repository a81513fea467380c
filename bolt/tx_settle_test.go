package bolt

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// A caller that has lost the lease changes nothing, gets an error, and may continue with the
// transaction.
func TestAckTxOfALostLease(t *testing.T) {
	for rule, lose := range map[string]func(t *testing.T, q *Queue, l *pawl.Lease){
		"expired":           func(_ *testing.T, q *Queue, _ *pawl.Lease) { expire(q) },
		"expired and given": func(t *testing.T, q *Queue, _ *pawl.Lease) { expire(q); leaseOne(t, q) },
		"acked":             func(t *testing.T, q *Queue, l *pawl.Lease) { require.NoError(t, q.Settle(t.Context(), l.Ack())) },
		"of another token":  func(_ *testing.T, _ *Queue, l *pawl.Lease) { l.Token++ },
		"acked in a transaction": func(t *testing.T, q *Queue, l *pawl.Lease) {
			own := *l
			inTx(t, q, nil, func(tx *bbolt.Tx) { require.NoError(t, q.AckTx(tx, &own)) })
		},
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				add(t, q, nil)
				l := leaseOne(t, q)
				lose(t, q, l)
				before := countsOf(t, q, pawl.DefaultQueue)
				inTx(t, q, nil, func(tx *bbolt.Tx) {
					require.ErrorIs(t, q.AckTx(tx, l), pawl.ErrLeaseLost)
					require.NoError(t, appPut(tx, "row"))
					require.NoError(t, withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "k", Queue: "other"}))
				})
				require.False(t, driver.Settled(l))
				require.Equal(t, before, countsOf(t, q, pawl.DefaultQueue))
				require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, "other"))
				require.Equal(t, []string{"row"}, appRows(t, q.db))
			})
		})
	}
}

// After a rollback the lease is unchanged. After a commit it is gone, for every verb, and the
// scheduler does not take it back when it would have expired.
func TestAckTxEndsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events eventLog
		q := openTest(t, &Options{Lease: 10 * time.Second, OnEvent: events.event})
		kept := add(t, q, func(e *pawl.Envelope) { e.Retain = time.Hour }).ID
		l := leaseOne(t, q)
		inTx(t, q, errRolledBack, func(tx *bbolt.Tx) {
			require.NoError(t, q.AckTx(tx, l))
			require.ErrorIs(t, q.AckTx(tx, l), pawl.ErrLeaseLost, "once in one transaction")
		})
		lost, err := q.Extend(t.Context(), l)
		require.NoError(t, err)
		require.Empty(t, lost)
		require.False(t, driver.Settled(l))

		inTx(t, q, nil, func(tx *bbolt.Tx) { require.NoError(t, q.AckTx(tx, l)) })
		require.True(t, driver.Settled(l))
		lost, err = q.Extend(t.Context(), l)
		require.NoError(t, err)
		require.Equal(t, []*pawl.Lease{l}, lost)
		for _, verb := range settling {
			require.ErrorIs(t, verb.end(t.Context(), q, l), pawl.ErrLeaseLost, verb.name)
		}
		require.NoError(t, q.do(t.Context(), visit(func() { require.Empty(t, q.scheduler.leases.byToken.pages) })))
		pass(time.Minute)
		synctest.Wait()
		e := find(t, q, kept)
		require.Equal(t, pawl.Completed, e.State)
		require.Equal(t, 1, e.Attempts)
		require.Zero(t, e.Crashes)
		require.Equal(t, []string{"enqueued", "fetched", "succeeded"}, events.take())
	})
}

// A lease that expires while a transaction acks it is acked: the transaction had the file.
func TestAckTxAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		add(t, q, nil)
		l := leaseOne(t, q)
		inTx(t, q, nil, func(tx *bbolt.Tx) {
			pass(time.Hour)
			require.NoError(t, q.AckTx(tx, l))
		})
		synctest.Wait()
		require.True(t, driver.Settled(l))
		require.Zero(t, countsOf(t, q, pawl.DefaultQueue))
	})
}

// Only one repeat suspect runs at a time. The next one comes when a transaction acks it,
// without another request.
func TestAckTxFreesTheSlotOfRepeatSuspects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		addCrashed(t, q, 2, "a", "b")
		l := leaseOne(t, q)
		var next []*pawl.Lease
		fetching := started(func() (err error) {
			next, err = q.Fetch(t.Context(), pawl.Request{Max: 1})
			return err
		})
		inTx(t, q, errRolledBack, func(tx *bbolt.Tx) { require.NoError(t, q.AckTx(tx, l)) })
		synctest.Wait()
		require.Empty(t, fetching)
		inTx(t, q, nil, func(tx *bbolt.Tx) { require.NoError(t, q.AckTx(tx, l)) })
		require.NoError(t, <-fetching)
		require.Equal(t, "b", next[0].Kind)
	})
}

// The effect of a transaction and the record that it took place are atomic: a job of the same
// key is skipped after a commit and runs after a rollback.
func TestAckTxFinishesTheEffect(t *testing.T) {
	for _, end := range []error{nil, errRolledBack} {
		synctest.Test(t, func(t *testing.T) {
			var events eventLog
			q := openTest(t, &Options{OnEvent: events.event})
			keyed := func(e *pawl.Envelope) { e.IdempotencyKey, e.IdempotencyTTL = "key", time.Hour }
			add(t, q, keyed)
			add(t, q, keyed)
			l := leaseOne(t, q)
			require.Empty(t, fetch(t, q, 1), "two never run side by side")
			inTx(t, q, end, func(tx *bbolt.Tx) { require.NoError(t, q.AckTx(tx, l)) })
			if end != nil {
				require.Empty(t, fetch(t, q, 1), "the first one goes on")
				require.NoError(t, q.Settle(t.Context(), l.Nack(time.Second, errBoom)))
				require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
				pass(time.Second)
				require.Empty(t, fetch(t, q, 1))
				return
			}
			require.Empty(t, fetch(t, q, 1))
			require.Contains(t, events.take(), "skipped")
			require.Zero(t, countsOf(t, q, pawl.DefaultQueue))
			pass(time.Hour)
			add(t, q, keyed)
			leaseOne(t, q)
		})
	}
}

// If the effect has taken place under another job in the meantime, the transaction must not
// repeat it. No call of a sound queue leads there: two such jobs never run concurrently.
func TestAckTxOfAnEffectThatHasTakenPlace(t *testing.T) {
	q := openTest(t, nil)
	e := add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey = "key" })
	l := leaseOne(t, q)
	require.NoError(t, q.do(t.Context(), finish{e}))
	var err error
	require.ErrorIs(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		require.NoError(t, appPut(tx, "row"))
		err = q.AckTx(tx, l)
		return err
	}), pawl.ErrConflict)
	require.ErrorContains(t, err, "idempotency key")
	require.Empty(t, appRows(t, q.db))
	require.False(t, driver.Settled(l))
	require.NoError(t, q.Settle(t.Context(), l.Ack()), "its holder still has it")
}

// finish is an operation that records that the effect of a job has taken place.
type finish struct{ job *pawl.Envelope }

func (finish) check(*txn) error { return nil }
func (op finish) apply(t *txn)  { t.finishEffect(stored{Envelope: op.job}) }

// The signal of a cancelled job fires once the cancel is durable, and the attempt then ends as
// after Cancel.
func TestCancelTxOfALeasedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		id := add(t, q, nil).ID
		l := leaseOne(t, q)
		inTx(t, q, errRolledBack, func(tx *bbolt.Tx) { require.NoError(t, q.CancelTx(tx, id)) })
		synctest.Wait()
		require.False(t, l.Cancelled.Fired())
		require.False(t, find(t, q, id).Cancelled)

		fired := make(chan struct{})
		l.Cancelled.OnFire(func() { close(fired) })
		reached, leave := g.hold()
		cancelled := started(func() error {
			return q.Update(context.Background(), func(tx *bbolt.Tx) error {
				return errors.Join(q.CancelTx(tx, id), q.CancelTx(tx, id)) // a repetition is no error
			})
		})
		reached()
		synctest.Wait()
		require.False(t, l.Cancelled.Fired(), "it is not durable")
		leave()
		require.NoError(t, <-cancelled)
		<-fired
		require.True(t, find(t, q, id).Cancelled)
		require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
		require.Equal(t, pawl.ReasonCancelled, find(t, q, id).Death.Reason)

		inTx(t, q, nil, func(tx *bbolt.Tx) {
			require.ErrorIs(t, q.CancelTx(tx, id), pawl.ErrConflict)
			require.ErrorIs(t, q.CancelTx(tx, pawl.NewID(time.Now())), pawl.ErrNotFound)
			require.NoError(t, appPut(tx, "row"))
		})
		require.Equal(t, []string{"row"}, appRows(t, q.db))
	})
}
