package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// Rule: calls that wait for unique keys that an open transaction of the app has taken delay no other
// call, and no lease expires while they wait. They get their answers when the transaction ends.
func TestCallsBesideALock(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]int{"one key": 1, "many keys": 60} {
		t.Run(name, func(t *testing.T) {
			const blocked, others = 60, 20
			q := open(t, newSchema(t), noPoll)
			l := lease(t, q, &pawl.Envelope{Kind: "leased"})
			tx := appTxs["pgx"](t)()
			for i := range keys {
				require.NoError(t, withid.Enqueue(t.Context(), q.In(tx), &pawl.Envelope{Kind: "k", UniqueKey: fmt.Sprint(i)}))
			}
			var answered atomic.Int32
			var wg sync.WaitGroup
			for i := range blocked {
				wg.Go(func() {
					defer answered.Add(1)
					done, err := q.Enqueue(context.WithoutCancel(t.Context()), &pawl.Envelope{Kind: "k", UniqueKey: fmt.Sprint(i % keys)})
					if err != nil || !done[0].Existing {
						t.Errorf("call %d: existing %v, error %v", i, done, err)
					}
				})
			}
			for range others {
				require.NoError(t, withid.Enqueue(patient(t), q, &pawl.Envelope{Kind: "other"}))
				lost, err := q.Extend(patient(t), l)
				require.NoError(t, err)
				require.Empty(t, lost)
			}
			require.Zero(t, answered.Load(), "while the transaction is open")
			require.NoError(t, tx.commit())
			wg.Wait()
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
		})
	}
}

// Rule: a job of a dead process that another session has locked delays neither the fetches of the other
// processes nor what else that process had. It comes back when it is free.
func TestLockedJobOfADeadProcess(t *testing.T) {
	schema := newSchema(t)
	dead, q := open(t, schema, noPoll), open(t, schema)
	locked := lease(t, dead, &pawl.Envelope{Kind: "locked"})
	free := lease(t, dead, &pawl.Envelope{Kind: "free"})
	tx := appTxs["pgx"](t)()
	require.NoError(t, dead.AckTx(t.Context(), tx, locked))
	require.NoError(t, dead.Close())
	execute(t, "UPDATE "+schema+".process SET live_until = 0 WHERE id = (SELECT min(process) FROM "+schema+".claim)")
	next := func() pawl.ID {
		leases, err := q.Fetch(patient(t), pawl.Request{Max: 1})
		require.NoError(t, err)
		return leases[0].ID
	}
	require.Equal(t, free.ID, next())
	other := &pawl.Envelope{Kind: "other"}
	require.NoError(t, withid.Enqueue(t.Context(), q, other))
	require.Equal(t, other.ID, next())
	require.NoError(t, tx.rollback())
	require.Equal(t, locked.ID, next())
}

// Rule: a lease that expires while an ack of it is under way ends with the transaction of the ack: as a
// success if the transaction commits.
func TestLeaseExpiresWhileItsAckIsUnderWay(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, schema string) {
		q := open(t, schema, virtual, func(o *postgres.Options) { o.Lease = time.Second })
		l := lease(t, q, &pawl.Envelope{Kind: "k", Retain: time.Hour})
		tx := appTxs["pgx"](t)()
		require.NoError(t, q.AckTx(t.Context(), tx, l))
		for ; !time.Now().After(l.Expires.Add(100 * time.Millisecond)); time.Sleep(50 * time.Millisecond) { // other calls continue
			require.NoError(t, withid.Enqueue(patient(t), q, &pawl.Envelope{Kind: "other"}))
		}
		require.NoError(t, tx.commit())
		e, err := q.Job(t.Context(), l.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.Completed, e.State)
		require.Zero(t, e.Crashes)
	})
}
