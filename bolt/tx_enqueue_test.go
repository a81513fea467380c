package bolt

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// A refused EnqueueTx leaves the transaction and its envelopes unchanged, so that the app may
// continue with the transaction.
func TestRefusedEnqueueTx(t *testing.T) {
	taken := pawl.NewID(time.Now())
	reject := func(e pawl.Envelope) *pawl.Envelope { e.OnConflict = pawl.Reject; return &e }
	for _, c := range []struct {
		rule string
		jobs []*pawl.Envelope
		want error
	}{
		{"an invalid job", []*pawl.Envelope{{Kind: "k"}, {Kind: ""}}, pawl.ErrInvalid},
		{"a payload that is too large", []*pawl.Envelope{{Kind: "k"}, {Kind: "k", Payload: make([]byte, 101)}}, pawl.ErrPayloadTooLarge},
		{"too many jobs", newBatch(pawl.MaxBatchJobs + 1), pawl.ErrBatchTooLarge},
		{"an ID that the queue has", []*pawl.Envelope{{Kind: "k"}, {Kind: "k", ID: taken}}, pawl.ErrConflict},
		{"a unique key that is taken", []*pawl.Envelope{{Kind: "k"}, reject(pawl.Envelope{Kind: "k", UniqueKey: "u"})}, pawl.ErrConflict},
	} {
		t.Run(c.rule, func(t *testing.T) {
			q := openTest(t, &Options{MaxPayload: 100})
			add(t, q, func(e *pawl.Envelope) { e.ID, e.UniqueKey = taken, "u" })
			given := make([]pawl.Envelope, len(c.jobs))
			for i, e := range c.jobs {
				given[i] = *e
			}
			inTx(t, q, nil, func(tx *bbolt.Tx) {
				require.NoError(t, appPut(tx, "row"))
				require.NoError(t, withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "a", Queue: "other"}))
				require.ErrorIs(t, withid.EnqueueTx(q, tx, c.jobs...), c.want)
				for i, e := range c.jobs {
					require.Equal(t, given[i], *e)
				}
				require.NoError(t, withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "b", Queue: "other"}))
			})
			require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
			require.Equal(t, "ab", kindsOf(fetch(t, q, 9, "other")))
			require.Equal(t, []string{"row"}, appRows(t, q.db))
		})
	}
}

// Rule: within a transaction an enqueue returns the IDs, and leaves its arguments as they are.
func TestEnqueueTxReturnsIDs(t *testing.T) {
	q := openTest(t, nil)
	own := pawl.NewID(time.Now())
	e, named := &pawl.Envelope{Kind: "k", Payload: make([]byte, 5000)}, &pawl.Envelope{Kind: "k", ID: own, Payload: []byte("p")}
	inTx(t, q, nil, func(tx *bbolt.Tx) {
		given := []pawl.Envelope{*e, *named}
		done, err := q.EnqueueTx(tx, e, named)
		require.NoError(t, err)
		require.Equal(t, given, []pawl.Envelope{*e, *named})
		require.False(t, done[0].ID.IsZero())
		require.Equal(t, []pawl.Enqueued{{ID: done[0].ID}, {ID: own}}, done)
		e.ID = done[0].ID
		require.ErrorIs(t, withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "k", ID: own}), pawl.ErrConflict, "a job of this very transaction")
	})
	require.Equal(t, find(t, q, e.ID).Seq+1, find(t, q, own).Seq)
	for _, e := range []*pawl.Envelope{e, named} {
		require.Equal(t, e.Payload, find(t, q, e.ID).Payload)
	}
}

// A unique key holds within the transaction as between transactions, and not after a rollback.
func TestUniqueKeyInATransaction(t *testing.T) {
	q := openTest(t, nil)
	unique := func(how pawl.Conflict) *pawl.Envelope {
		return &pawl.Envelope{Kind: "k", UniqueKey: "u", OnConflict: how, Payload: []byte{byte(how)}}
	}
	inTx(t, q, errRolledBack, func(tx *bbolt.Tx) { require.NoError(t, withid.EnqueueTx(q, tx, unique(pawl.Reject))) })
	first, same, replacing := unique(pawl.Reject), unique(pawl.UseExisting), unique(pawl.Replace)
	inTx(t, q, nil, func(tx *bbolt.Tx) {
		require.NoError(t, withid.EnqueueTx(q, tx, first), "the one before was rolled back")
		done, err := q.EnqueueTx(tx, same)
		require.NoError(t, err)
		require.Equal(t, []pawl.Enqueued{{ID: first.ID, Existing: true}}, done)
		require.ErrorIs(t, withid.EnqueueTx(q, tx, unique(pawl.Reject)), pawl.ErrConflict)
		require.NoError(t, withid.EnqueueTx(q, tx, replacing))
		require.Equal(t, first.ID, replacing.ID)
	})
	require.Equal(t, replacing.Payload, find(t, q, first.ID).Payload)
	inTx(t, q, errRolledBack, func(tx *bbolt.Tx) { require.NoError(t, q.CancelTx(tx, first.ID)) })
	require.ErrorIs(t, withid.Enqueue(t.Context(), q, unique(pawl.Reject)), pawl.ErrConflict, "the cancel was rolled back")
	inTx(t, q, nil, func(tx *bbolt.Tx) {
		require.NoError(t, q.CancelTx(tx, first.ID))
		require.NoError(t, withid.EnqueueTx(q, tx, unique(pawl.Reject)), "the dead job does not block")
	})
	require.Equal(t, pawl.Counts{Ready: 1, Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
}

// A commit wakes the fetches that wait for its jobs: a ready job immediately, a delayed one at
// its time.
func TestEnqueueTxWakesAFetch(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			q := openTest(t, nil)
			start := time.Now()
			var got []*pawl.Lease
			fetching := started(func() (err error) {
				got, err = q.Fetch(t.Context(), pawl.Request{Max: 1})
				return err
			})
			synctest.Wait()
			inTx(t, q, errRolledBack, func(tx *bbolt.Tx) { require.NoError(t, withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "x"})) })
			synctest.Wait()
			require.Empty(t, fetching)
			inTx(t, q, nil, func(tx *bbolt.Tx) {
				require.NoError(t, withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "k", Delay: delay}))
				synctest.Wait()
				require.Empty(t, fetching, "it is not committed")
			})
			require.NoError(t, <-fetching)
			require.Equal(t, "k", got[0].Kind)
			require.Equal(t, delay, time.Since(start))
		})
	}
}
