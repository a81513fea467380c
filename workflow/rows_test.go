package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Rule: if a salvage has left no rows of runs, new runs can begin. If it has left some, missing
// tables are not recreated, since a run without its journal would repeat all of its calls.
func TestRowsThatASalvageLost(t *testing.T) {
	for _, left := range []*driver.Table{nil, tableRuns, tableSteps} {
		d := newDesk(t)
		d.start("a")
		require.NoError(t, d.file.Update(t.Context(), func(tx *bbolt.Tx) error {
			if err := tx.DeleteBucket(space.Bytes()); err != nil {
				return err
			}
			root, err := tx.CreateBucket(space.Bytes())
			if err == nil && left != nil {
				_, err = root.CreateBucket(left.Bytes())
			}
			return err
		}))
		for _, table := range space.Tables() {
			err := d.file.Mutate(t.Context(), byHand{apply: func(r rows) error { return r.put(table, []byte("key"), nil) }}, 0)
			if left == nil || table == left {
				require.NoError(t, err, "%s of %v", table, left)
			} else {
				require.ErrorIs(t, err, driver.ErrNoTable, "%s of %v", table, left)
				require.ErrorIs(t, err, pawl.ErrCorrupt)
			}
		}
	}
}

// Rule: a run whose journal a damaged file lost does not run again from its start.
func TestRunWithoutItsJournal(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	require.NoError(t, d.file.Update(t.Context(), func(tx *bbolt.Tx) error {
		return tx.Bucket(space.Bytes()).DeleteBucket(tableSteps.Bytes())
	}))
	_, err := newExecution(t.Context(), d.Engine, nil, run, nil).load(t.Context())
	require.ErrorIs(t, err, pawl.ErrCorrupt)
}

// Rule: a row in the place of the bucket of workflows is damage, and reported as such.
func TestARowInPlaceOfTheBucket(t *testing.T) {
	d := newDesk(t)
	require.NoError(t, d.file.Update(t.Context(), func(tx *bbolt.Tx) error {
		return tx.Cursor().Bucket().Put(space.Bytes(), []byte("row"))
	}))
	_, err := note.Start(t.Context(), d.Engine, "a", "input")
	require.ErrorIs(t, err, pawl.ErrCorrupt)
}

// Rule: rows that cannot be removed because of damage prevent no start of a run, and no removal
// of later rows.
func TestDamageInTheWayOfARemoval(t *testing.T) {
	d := newDesk(t)
	spoilt, sound := d.start("a"), d.start("b")
	d.end(spoilt, Done)
	d.pass(1)
	d.end(sound, Done)
	for table, key := range map[*driver.Table][]byte{tableSteps: seqKey(spoilt, 1), tableEnded: {0}} {
		d.raw(table, func(b *bbolt.Bucket) error { // flags of a page element that say a bucket follows
			_, err := b.CreateBucket(key)
			return err
		})
	}
	d.pass(DefaultRetention)
	d.start("c")
	d.sweep(1000)
	_, err := d.Info(t.Context(), sound)
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorIs(t, d.Check(t.Context()), pawl.ErrCorrupt)
	require.Equal(t, 2, d.kept(), "what is left is looked at later")
}

// Rule: a row whose place a bucket has cannot be written, and that is damage.
func TestABucketInThePlaceOfARow(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	d.raw(tableSignals, func(b *bbolt.Bucket) error {
		_, err := b.CreateBucket(signalKey(run, "news", 1))
		return err
	})
	require.ErrorIs(t, d.Send(t.Context(), run, "news", nil, ""), pawl.ErrCorrupt)
	d.write(func(r rows) error {
		require.ErrorIs(t, r.delete(tableSignals, signalKey(run, "news", 1)), pawl.ErrCorrupt)
		left := portionQuota()
		require.ErrorIs(t, r.remove(run[:], run[:], &left, tableSignals), pawl.ErrCorrupt)
		return nil
	})
}

// Rule: a sound row of another bucket with the same key is not taken for the value of an entry.
// Damaged files have exchanged pages.
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
		value, err := r.Get(tableSteps, key)
		if err != nil {
			return err
		}
		return r.w.Put(tableBlobs, key, value)
	})
	require.Nil(t, value().Result)
	require.Contains(t, value().Error, "corrupt")
}
