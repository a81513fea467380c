package bolt

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// An app's transaction ends the lease of a job and stores a new job with its ID. Between its
// commit and its note, the queue leases the new job. The note affects only the old lease: the
// new one can be extended, is taken back when it expires, receives a cancel, and the scheduler
// becomes idle.
func TestLeaseThatComesBeforeTheNote(t *testing.T) {
	const length = time.Minute
	for rule, test := range map[string]func(t *testing.T, q *Queue, l *pawl.Lease){
		"it is taken back at its expiry": func(t *testing.T, q *Queue, l *pawl.Lease) {
			pass(length - 1)
			synctest.Wait()
			require.Equal(t, pawl.Leased, find(t, q, l.ID).State)
			pass(1)
			synctest.Wait()
			require.Equal(t, pawl.Ready, find(t, q, l.ID).State)
			require.Equal(t, 1, find(t, q, l.ID).Crashes)
		},
		"it can be extended": func(t *testing.T, q *Queue, l *pawl.Lease) {
			for range 3 {
				pass(length - 1)
				lost, err := q.Extend(t.Context(), l)
				require.NoError(t, err)
				require.Empty(t, lost)
			}
			pass(length - 1)
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
		},
		"it hears of a cancel": func(t *testing.T, q *Queue, l *pawl.Lease) {
			require.False(t, l.Cancelled.Fired())
			require.NoError(t, q.Cancel(t.Context(), l.ID))
			require.True(t, l.Cancelled.Fired())
			require.NoError(t, q.Settle(t.Context(), l.Release()))
			require.Equal(t, pawl.Dead, find(t, q, l.ID).State)
		},
		"it is the only one that is known": func(t *testing.T, q *Queue, l *pawl.Lease) {
			require.NoError(t, q.do(t.Context(), visit(func() {
				lt := q.scheduler.leases
				require.Equal(t, l.Token, lt.head.next.token)
				require.Same(t, lt.byToken.get(l.Token), lt.head.next)
				require.Same(t, lt.head.next, lt.head.prev, "there is another in the order of expiry")
				require.Len(t, lt.byToken.pages, 1)
				require.Equal(t, 1, lt.byToken.pages[l.Token/pageTokens].n)
			})))
		},
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reads atomic.Int32
				db := openApp(t)
				q := openOver(t, db, &Options{Lease: length, Now: func() time.Time {
					if reads.Add(1) > 1000 {
						panic("the scheduler does not rest")
					}
					return time.Now()
				}})
				old, l := leaseBeforeNote(t, q, db, func(tx *bbolt.Tx, l *pawl.Lease) { require.NoError(t, q.AckTx(tx, l)) })
				require.NotEqual(t, old.Token, l.Token)
				require.ErrorIs(t, q.Settle(t.Context(), old.Ack()), pawl.ErrLeaseLost)
				reads.Store(0)
				test(t, q, l)
				pass(10 * length)
				synctest.Wait()
				require.Less(t, reads.Load(), int32(50), "the scheduler does not rest")
			})
		})
	}
}

// leaseBeforeNote leases a job and ends that lease in an app's transaction, which also stores a
// new job with the same ID. It lets the queue lease the new job before the queue learns of the
// transaction.
func leaseBeforeNote(t *testing.T, q *Queue, db *bbolt.DB, end func(*bbolt.Tx, *pawl.Lease)) (old, l *pawl.Lease) {
	t.Helper()
	add(t, q, nil)
	old = leaseOne(t, q)
	tx, err := db.Begin(true)
	require.NoError(t, err)
	leases := waitFetch(t, q)
	tx.OnCommit(func() { l = <-leases }) // before those of the verbs
	end(tx, old)
	require.NoError(t, withid.EnqueueTx(q, tx, &pawl.Envelope{ID: old.ID, Kind: "k"}))
	require.NoError(t, tx.Commit())
	settled(t, q)
	require.NotNil(t, l)
	require.Equal(t, old.ID, l.ID)
	return old, l
}

// If an app's transaction cancelled a job under one lease, the next lease does not get that
// signal.
func TestLateCancelIsForItsOwnLease(t *testing.T) {
	db := openApp(t)
	q := openOver(t, db, nil)
	old, l := leaseBeforeNote(t, q, db, func(tx *bbolt.Tx, l *pawl.Lease) {
		require.NoError(t, q.CancelTx(tx, l.ID))
		require.NoError(t, q.AckTx(tx, l))
	})
	require.True(t, driver.Settled(old))
	require.False(t, l.Cancelled.Fired(), "the cancel was for the lease before")
	require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
	require.Equal(t, pawl.Ready, find(t, q, l.ID).State, "it was not cancelled")
}
