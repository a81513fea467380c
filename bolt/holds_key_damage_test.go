package bolt

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// Rule: a leased job of a queue that keeps the order of its keys holds its key, also if the row of the key is lost or
// damaged.
func TestALeasedJobHoldsItsKeyWithoutTheRow(t *testing.T) {
	for name, hit := range map[string]func(b *bbolt.Bucket, key, row []byte) error{
		"sound":   func(*bbolt.Bucket, []byte, []byte) error { return nil },
		"lost":    func(b *bbolt.Bucket, key, _ []byte) error { return b.Delete(key) },
		"damaged": func(b *bbolt.Bucket, key, row []byte) error { return b.Put(key, append(row, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			q := openTest(t, &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {InOrder: pawl.OrderHold}}})
			var ids []pawl.ID
			for range 2 {
				ids = append(ids, add(t, q, func(e *pawl.Envelope) { e.Key = "k" }).ID)
			}
			lease := fetch(t, q, 1)[0]
			require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
				keys := tx.Bucket(bucketRoot).Bucket(bucketKeys)
				key, row := keys.Cursor().First()
				require.NotNil(t, key)
				return hit(keys, append([]byte(nil), key...), append([]byte(nil), row...))
			}))
			for i, id := range ids {
				e, err := q.Job(t.Context(), id)
				require.NoError(t, err)
				require.Equal(t, i == 0, e.HoldsKey, e.State)
			}
			require.NoError(t, q.Settle(t.Context(), lease.Ack()))
		})
	}
}

// Rule: if damage hides whether the jobs of a queue run in order, no list says of a leased job with a key that it does
// not hold the key.
func TestALeasedJobIsNotListedIfDamageHidesItsHold(t *testing.T) {
	queue := numberKey(nil, 1)
	limits := map[string]pawl.Limits{pawl.DefaultQueue: {InOrder: pawl.OrderHold}, "other": {}}
	for name, test := range map[string]struct {
		damaged func(row []byte) []byte // nil to delete the row
	}{
		"a lost queue":    {nil},
		"a damaged queue": {func(row []byte) []byte { return append(row, 0) }},
		"another queue":   {func([]byte) []byte { return seal(queue, (&queueRow{name: "other"}).append(nil)) }},
	} {
		t.Run(name, func(t *testing.T) {
			q := openTest(t, &Options{Limits: limits})
			plain := add(t, q, nil)
			leaseOne(t, q)
			keyed := add(t, q, func(e *pawl.Envelope) { e.Key = "k" })
			leaseOne(t, q)
			change := func(fn func(b *bbolt.Bucket) error) {
				require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return fn(tx.Bucket(bucketRoot).Bucket(bucketQueues)) }))
			}
			var sound []byte
			change(func(b *bbolt.Bucket) error {
				sound = bytes.Clone(b.Get(queue))
				require.NotNil(t, sound)
				if test.damaged == nil {
					return b.Delete(queue)
				}
				return b.Put(queue, test.damaged(bytes.Clone(sound)))
			})
			defer change(func(b *bbolt.Bucket) error { return b.Put(queue, sound) })
			_, err := q.Job(t.Context(), keyed.ID)
			require.ErrorIs(t, err, pawl.ErrCorrupt)
			listed := 0
			for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
				listed++
				require.Equal(t, e.ID == keyed.ID, errors.Is(err, pawl.ErrCorrupt), err)
			}
			require.Equal(t, 2, listed)
			require.Equal(t, pawl.Leased, find(t, q, plain.ID).State, "no order concerns it")
		})
	}
}

// Rule: of several jobs that hold a key by their records, as pages of two files have them, the leased one keeps it.
func TestALeasedJobKeepsItsKeyBesideAnotherHolder(t *testing.T) {
	q := openTest(t, ordered(pawl.OrderContinue))
	jobs := addKeyed(t, q, 3, "a")
	lease := leaseOne(t, q)
	require.Equal(t, jobs[0].ID, lease.ID)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		s, err := openStore(tx)
		require.NoError(t, err)
		j, err := s.record(jobs[1].ID)
		require.NoError(t, err)
		j.HoldsKey = true
		return putRecord(&s, j.Envelope)
	}))
	flip(t, q, bucketKeys, limitKey(nil, 1, "a"))
	addKeyed(t, q, 1, "a") // recounts the key
	require.True(t, find(t, q, jobs[0].ID).HoldsKey)
	require.False(t, find(t, q, jobs[1].ID).HoldsKey)
	checkNow(t, q)
	require.NoError(t, q.Settle(t.Context(), lease.Nack(0, errBoom)))
	require.Equal(t, jobs[0].ID, leaseOne(t, q).ID)
}

// Rule: if damage has removed the first job of a key, the next job of the key runs once another one becomes ready, and
// the log says so.
func TestAKeyGoesOnWithoutItsLostHead(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(path, ordered(pawl.OrderHold))
	require.NoError(t, err)
	jobs := addKeyed(t, q, 3, "a")
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonPermanent, errBoom)))
	require.Empty(t, fetch(t, q, 9), "the dead job holds its key")
	require.NoError(t, q.Close())
	withBolt(t, path, func(tx *bbolt.Tx) error {
		s, err := openStore(tx)
		require.NoError(t, err)
		return s.jobs.Delete(jobs[0].ID[:])
	})
	var lines bytes.Buffer
	o := ordered(pawl.OrderHold)
	o.Logger = hclog.New(&hclog.LoggerOptions{Output: &lines})
	q, err = Open(path, o)
	require.NoError(t, err)
	jobs = append(jobs, addKeyed(t, q, 1, "a")...)
	for _, job := range jobs[1:] {
		lease := leaseOne(t, q)
		require.Equal(t, job.ID, lease.ID)
		require.NoError(t, q.Settle(t.Context(), lease.Ack()))
	}
	require.NoError(t, q.Close())
	require.Contains(t, lines.String(), "job "+jobs[0].ID.String()+", whose turn it is, is not in the file")
}
