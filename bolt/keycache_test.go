package bolt

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// Rule: an app's own transaction changes what the queue knows of a key.
func TestKeyAfterAnAppsTransaction(t *testing.T) {
	db := openApp(t)
	q := openOver(t, db, perKey(1))
	addKeyed(t, q, 2, "a")
	l := leaseOne(t, q)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return q.AckTx(tx, l) }))
	l = leaseOne(t, q)
	checkNow(t, q)
	addKeyed(t, q, 1, "a")
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return q.AckTx(tx, l) }))
	leaseOne(t, q)
	checkNow(t, q)
}

// Rule: a commit that the disk refuses changes nothing of what the queue knows of a key.
func TestKeyAfterARefusedCommit(t *testing.T) {
	q := openTest(t, perKey(1))
	addKeyed(t, q, 1, "a")
	refused := 0
	require.NoError(t, q.do(t.Context(), visit(func() {
		commit := q.scheduler.commitTx
		q.scheduler.commitTx = func(tx *bbolt.Tx) error {
			if refused++; refused <= 2 { // a fetch, and the same apart
				return refusals[0]
			}
			return commit(tx)
		}
	})))
	_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, ErrDisk)
	leaseOne(t, q)
	checkNow(t, q)
	addKeyed(t, q, 1, "a")
	require.Empty(t, fetch(t, q, 1), "the key has one lease")
}

// Rule: the queue keeps a limited number of keys in memory, and counts right whichever it keeps.
func TestMoreKeysThanAreKept(t *testing.T) {
	q := openTest(t, perKey(1))
	var jobs []*pawl.Envelope
	for i := range maxCachedKeys + 2 {
		jobs = append(jobs, &pawl.Envelope{Kind: "k", Key: fmt.Sprint(i)})
	}
	for len(jobs) > 0 {
		n := min(len(jobs), pawl.MaxBatchJobs)
		_, err := q.Enqueue(t.Context(), jobs[:n]...)
		require.NoError(t, err)
		jobs = jobs[n:]
		require.NoError(t, q.do(t.Context(), visit(func() {
			if len(q.scheduler.keyRows.rows) > maxCachedKeys {
				t.Error("keys in memory:", len(q.scheduler.keyRows.rows))
			}
		})))
	}
	addKeyed(t, q, 1, "0")
	checkNow(t, q)
}

// Rule: a blocked job whose row has the form of earlier builds is unblocked like the others.
func TestBlockedRowOfAnEarlierBuild(t *testing.T) {
	q := openTest(t, perKey(1))
	addKeyed(t, q, 2, "a")
	l := leaseOne(t, q)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketRoot).Bucket(bucketDelayed)
		k, v := b.Cursor().First()
		row, err := unseal(k, v, indexWidth)
		if err != nil {
			return err
		}
		old := append(append([]byte{}, row...), k[len(k)-readyKeyWidth:]...)
		return b.Put(append([]byte{}, k...), seal(k, old))
	}))
	checkNow(t, q)
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
	leaseOne(t, q)
	checkNow(t, q)
}
