package bolt

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
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
				require.NoError(t, q.EnqueueTx(tx, &pawl.Envelope{Kind: "a", Queue: "other"}))
				require.ErrorIs(t, q.EnqueueTx(tx, c.jobs...), c.want)
				for i, e := range c.jobs {
					require.Equal(t, given[i], *e)
				}
				require.NoError(t, q.EnqueueTx(tx, &pawl.Envelope{Kind: "b", Queue: "other"}))
			})
			require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
			require.Equal(t, "ab", kindsOf(fetch(t, q, 9, "other")))
			require.Equal(t, []string{"row"}, appRows(t, q.db))
		})
	}
}

// Within a transaction the envelopes are complete, like those of Enqueue.
func TestEnqueueTxCompletesTheEnvelope(t *testing.T) {
	q := openTest(t, nil)
	own := pawl.NewID(time.Now())
	e, named := &pawl.Envelope{Kind: "k", Payload: make([]byte, 5000)}, &pawl.Envelope{Kind: "k", ID: own, Payload: []byte("p")}
	inTx(t, q, nil, func(tx *bbolt.Tx) {
		require.NoError(t, q.EnqueueTx(tx, e, named))
		require.False(t, e.ID.IsZero())
		require.Equal(t, own, named.ID)
		require.Equal(t, e.Seq+1, named.Seq)
		require.ErrorIs(t, q.EnqueueTx(tx, &pawl.Envelope{Kind: "k", ID: own}), pawl.ErrConflict, "a job of this very transaction")
	})
	for _, e := range []*pawl.Envelope{e, named} {
		found := find(t, q, e.ID)
		found.State, e.Created, e.NotBefore = "", fromFile(e.Created), fromFile(e.NotBefore)
		require.Equal(t, e, found)
	}
}

// A unique key holds within the transaction as between transactions, and not after a rollback.
func TestUniqueKeyInATransaction(t *testing.T) {
	q := openTest(t, nil)
	unique := func(how pawl.Conflict) *pawl.Envelope {
		return &pawl.Envelope{Kind: "k", UniqueKey: "u", OnConflict: how, Payload: []byte{byte(how)}}
	}
	inTx(t, q, errRolledBack, func(tx *bbolt.Tx) { require.NoError(t, q.EnqueueTx(tx, unique(pawl.Reject))) })
	first, same, replacing := unique(pawl.Reject), unique(pawl.UseExisting), unique(pawl.Replace)
	inTx(t, q, nil, func(tx *bbolt.Tx) {
		require.NoError(t, q.EnqueueTx(tx, first), "the one before was rolled back")
		require.NoError(t, q.EnqueueTx(tx, same))
		require.True(t, same.Existing)
		require.Equal(t, first.ID, same.ID)
		require.ErrorIs(t, q.EnqueueTx(tx, unique(pawl.Reject)), pawl.ErrConflict)
		require.NoError(t, q.EnqueueTx(tx, replacing))
		require.Equal(t, first.ID, replacing.ID)
	})
	require.Equal(t, replacing.Payload, find(t, q, first.ID).Payload)
	inTx(t, q, errRolledBack, func(tx *bbolt.Tx) { require.NoError(t, q.CancelTx(tx, first.ID)) })
	require.ErrorIs(t, q.Enqueue(t.Context(), unique(pawl.Reject)), pawl.ErrConflict, "the cancel was rolled back")
	inTx(t, q, nil, func(tx *bbolt.Tx) {
		require.NoError(t, q.CancelTx(tx, first.ID))
		require.NoError(t, q.EnqueueTx(tx, unique(pawl.Reject)), "the dead letter does not block")
	})
	require.Equal(t, pawl.Counts{Ready: 1, Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
}

// A commit wakes the fetches that wait for its jobs: a ready job at once, a delayed one at its
// time.
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
			inTx(t, q, errRolledBack, func(tx *bbolt.Tx) { require.NoError(t, q.EnqueueTx(tx, &pawl.Envelope{Kind: "x"})) })
			synctest.Wait()
			require.Empty(t, fetching)
			inTx(t, q, nil, func(tx *bbolt.Tx) {
				require.NoError(t, q.EnqueueTx(tx, &pawl.Envelope{Kind: "k", Delay: delay}))
				synctest.Wait()
				require.Empty(t, fetching, "it is not committed")
			})
			require.NoError(t, <-fetching)
			require.Equal(t, "k", got[0].Kind)
			require.Equal(t, delay, time.Since(start))
		})
	}
}
