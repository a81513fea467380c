package bolt

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// blockedRows counts the jobs that are blocked by a key.
func (s *store) blockedRows() (n int) {
	c := s.delayed.Cursor()
	for k, _ := c.Seek(allBlocked); bytes.HasPrefix(k, allBlocked); k, _ = c.Next() {
		n++
	}
	return n
}

func blockedJobs(t *testing.T, q *Queue) (n int) {
	t.Helper()
	require.NoError(t, q.view(t.Context(), func(s *store) error { n = s.blockedRows(); return nil }))
	return n
}

// holdKey leases a job of the idempotency key "key", and blocks one job for each unique key.
func holdKey(t *testing.T, q *Queue, unique ...string) *pawl.Lease {
	t.Helper()
	add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey = "key" })
	l := leaseOne(t, q)
	for _, key := range unique {
		add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey, e.UniqueKey = "key", key })
	}
	require.Empty(t, fetch(t, q, 10))
	require.Equal(t, len(unique), blockedJobs(t, q))
	return l
}

// ackAll fetches and acks until nothing is left to fetch, and returns how many jobs it acked.
func ackAll(t *testing.T, q *Queue, queues ...string) (n int) {
	t.Helper()
	for {
		leases := fetch(t, q, 10, queues...)
		if len(leases) == 0 {
			return n
		}
		for _, l := range leases {
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
			n++
		}
	}
}

// A batch that replaces jobs which were blocked by one idempotency key finds each of them in
// its current place: removing the first unblocks the second. Each has one row left and the
// counts are right, whichever keys the new jobs have.
func TestBatchReplacesBlockedJobs(t *testing.T) {
	for _, c := range []struct {
		keys  [3]string // keys of the new jobs
		first int       // jobs that can be fetched while the key is leased
		then  int       // and after that lease has ended
	}{
		{[3]string{"", "", ""}, 3, 0},
		{[3]string{"key", "key", "key"}, 0, 1},
		{[3]string{"key", "", ""}, 2, 1},
		{[3]string{"", "", "key"}, 2, 1},
		{[3]string{"", "other", "other"}, 2, 0},
	} {
		for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}} {
			t.Run(fmt.Sprint(c.keys, order), func(t *testing.T) {
				q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
				holder := holdKey(t, q, "0", "1", "2")
				var batch []*pawl.Envelope
				for _, i := range order {
					batch = append(batch, &pawl.Envelope{
						Kind: "k", UniqueKey: fmt.Sprint(i), OnConflict: pawl.Replace, IdempotencyKey: c.keys[i],
					})
				}
				require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
				require.Equal(t, pawl.Counts{Ready: 3, Leased: 1}, countsOf(t, q, pawl.DefaultQueue))
				checkNow(t, q)
				require.Equal(t, c.first, ackAll(t, q))
				require.NoError(t, q.Settle(t.Context(), holder.Nack(time.Hour, errBoom)))
				require.Equal(t, c.then, ackAll(t, q))
				require.Equal(t, pawl.Counts{Delayed: 1}, countsOf(t, q, pawl.DefaultQueue))
			})
		}
	}
}

// The same in an app's transaction, with separate enqueues.
func TestEnqueueTxReplacesBlockedJobs(t *testing.T) {
	q := openTest(t, nil)
	holder := holdKey(t, q, "0", "1", "2")
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		for i := range 3 {
			e := &pawl.Envelope{Kind: "k", UniqueKey: fmt.Sprint(i), OnConflict: pawl.Replace, IdempotencyKey: "key"}
			if err := withid.EnqueueTx(q, tx, e); err != nil {
				return err
			}
		}
		return nil
	}))
	require.Equal(t, pawl.Counts{Ready: 3, Leased: 1}, countsOf(t, q, pawl.DefaultQueue))
	checkNow(t, q)
	require.NoError(t, q.Settle(t.Context(), holder.Nack(time.Hour, errBoom)))
	require.Equal(t, 1, ackAll(t, q))
	require.Equal(t, pawl.Counts{Delayed: 1}, countsOf(t, q, pawl.DefaultQueue))
}

// A transfer removes a dead job and nothing else: jobs blocked by its key stay blocked until
// the lease ends, and are unblocked then.
func TestTransferBesideBlockedJobs(t *testing.T) {
	for _, key := range []string{"", "key"} {
		for _, queue := range []string{pawl.DefaultQueue, "other"} {
			t.Run(key+", "+queue, func(t *testing.T) {
				q := openTest(t, nil)
				add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey = "key" })
				dead := leaseOne(t, q)
				require.NoError(t, q.Settle(t.Context(), dead.Abandon(pawl.ReasonPermanent, errBoom)))
				holder := holdKey(t, q, "0", "1")
				moved := &pawl.Envelope{ID: dead.ID, Kind: "k", Queue: queue, IdempotencyKey: key}
				require.NoError(t, q.Transfer(t.Context(), moved, nil))
				require.Equal(t, dead.ID, moved.ID)
				require.Equal(t, 2, blockedJobs(t, q))
				checkNow(t, q)
				require.NoError(t, q.Settle(t.Context(), holder.Nack(time.Hour, errBoom)))
				runs := 1 // one job of the key; the others are skipped
				if key == "" {
					runs++
				}
				require.Equal(t, runs, ackAll(t, q, pawl.DefaultQueue, "other"))
				require.Equal(t, pawl.Counts{Delayed: 1}, countsOf(t, q, pawl.DefaultQueue))
				require.Zero(t, countsOf(t, q, "other"))
			})
		}
	}
}

// Rule: a job whose delay ends before its transaction begins is ready for the later jobs of its
// batch, as it is for those of other calls: a unique key is not held twice.
func TestDelayOfABatchEndsBeforeItsTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, blocked := range []pawl.State{pawl.Ready, pawl.Delayed} {
			q := openTest(t, nil)
			release := gateCommits(q).occupy(q)
			first := &pawl.Envelope{Kind: "k", UniqueKey: "key", Delay: time.Second}
			second := &pawl.Envelope{Kind: "k", UniqueKey: "key", UniqueIn: []pawl.State{blocked}}
			var stored []pawl.Enqueued
			done := started(func() (err error) {
				stored, err = q.Enqueue(t.Context(), first, second)
				return err
			})
			synctest.Wait()
			pass(time.Minute)
			release()
			require.NoError(t, <-done)
			require.Equal(t, blocked == pawl.Ready, stored[1].Existing, "a %s job blocks the second", blocked)
		}
	})
}
