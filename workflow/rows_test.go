package workflow

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Rule: a row that a newer build wrote is not taken for damage, and one of a form that there
// never was is; both say so by an error that a caller can match.
func TestFormOfARow(t *testing.T) {
	bucket, key := bucketSteps, []byte("key")
	inForm := func(form byte) []byte {
		value := append([]byte{form}, "content"...)
		return binary.BigEndian.AppendUint32(value, checksum(bucket, key, value))
	}
	content, err := unseal(bucket, key, inForm(rowVersion))
	require.NoError(t, err)
	require.Equal(t, "content", string(content))

	_, err = unseal(bucket, key, inForm(rowVersion+1))
	require.ErrorIs(t, err, bolt.ErrNewerFormat)
	require.NotErrorIs(t, err, pawl.ErrCorrupt)

	_, err = unseal(bucket, key, inForm(0))
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	require.NotErrorIs(t, err, bolt.ErrNewerFormat)
}

// Rule: a row in the place of another is damage: under another key, and in another bucket.
func TestARowBelongsToItsPlace(t *testing.T) {
	sealed := seal(bucketSteps, []byte("key"), []byte("content"))
	_, err := unseal(bucketSteps, []byte("kez"), sealed)
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	_, err = unseal(bucketBlobs, []byte("key"), sealed)
	require.ErrorIs(t, err, pawl.ErrCorrupt)
}

// Rule: where a salvage has left nothing of the rows of runs, new runs begin; where it has left
// some, what is missing is not made anew, since a run without its journal would do all again.
func TestRowsThatASalvageLost(t *testing.T) {
	for _, left := range [][]byte{nil, bucketRuns, bucketSteps} {
		d := newDesk(t)
		d.start("a")
		require.NoError(t, d.queue.Update(t.Context(), func(tx *bbolt.Tx) error {
			if err := tx.DeleteBucket(bucketRoot); err != nil {
				return err
			}
			root, err := tx.CreateBucket(bucketRoot)
			if err == nil && left != nil {
				_, err = root.CreateBucket(left)
			}
			return err
		}))
		require.NoError(t, d.queue.Update(t.Context(), func(tx *bbolt.Tx) error {
			r, err := makeRows(tx)
			for _, name := range buckets {
				require.Equal(t, left == nil || string(name) == string(left), r.bucket(name) != nil, "%s of %s", name, left)
			}
			return err
		}))
	}
}

// Rule: a row in the place of the bucket of workflows is damage, and told as that.
func TestARowInPlaceOfTheBucket(t *testing.T) {
	d := newDesk(t)
	err := d.queue.Update(t.Context(), func(tx *bbolt.Tx) error {
		if err := tx.Cursor().Bucket().Put(bucketRoot, []byte("row")); err != nil {
			return err
		}
		_, err := makeRows(tx)
		return err
	})
	require.ErrorIs(t, err, pawl.ErrCorrupt)
}

// Rule: what cannot be removed because the file is damaged keeps nobody from starting a run,
// nor what is behind it from being removed.
func TestDamageInTheWayOfARemoval(t *testing.T) {
	d := newDesk(t)
	spoilt, sound := d.start("a"), d.start("b")
	d.end(spoilt, Done)
	d.pass(1)
	d.end(sound, Done)
	d.write(func(r rows) error { // bits of a page that say that a bucket follows
		_, err := r.bucket(bucketSteps).CreateBucket(seqKey(spoilt, 1))
		if err == nil {
			_, err = r.bucket(bucketEnded).CreateBucket([]byte{0})
		}
		return err
	})
	d.pass(DefaultRetention)
	d.start("c")
	d.sweep(1000)
	_, err := d.Info(t.Context(), sound)
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorIs(t, d.Check(t.Context()), pawl.ErrCorrupt)
	require.Equal(t, 2, d.kept(), "what is left is looked at later")
}

// Rule: a row that a bucket is in the place of cannot be written, and that is damage.
func TestABucketInThePlaceOfARow(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	d.write(func(r rows) error {
		_, err := r.bucket(bucketSignals).CreateBucket(signalKey(run, "news", 1))
		return err
	})
	require.ErrorIs(t, d.Send(t.Context(), run, "news", nil, ""), pawl.ErrCorrupt)
	d.write(func(r rows) error {
		require.ErrorIs(t, r.delete(bucketSignals, signalKey(run, "news", 1)), pawl.ErrCorrupt)
		left := portionQuota()
		require.ErrorIs(t, r.remove(run[:], run[:], &left, bucketSignals), pawl.ErrCorrupt)
		return nil
	})
}

// Rule: a sound row of another bucket, which has the same key, is not taken for the value of an
// entry: pages are exchanged in damaged files.
func TestAnEntryInThePlaceOfItsValue(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	d.journal(run, &entry{Name: "large", Kind: KindStep, State: EntryDone, Result: make([]byte, maxInline+1)})
	value := func() Entry {
		journal, err := d.Journal(t.Context(), run, true)
		require.NoError(t, err)
		require.Len(t, journal, 1)
		return journal[0]
	}
	require.Len(t, value().Result, maxInline+1)
	d.write(func(r rows) error {
		key := seqKey(run, 1)
		return r.bucket(bucketBlobs).Put(key, r.bucket(bucketSteps).Get(key))
	})
	require.Nil(t, value().Result)
	require.Contains(t, value().Error, "corrupt")
}
