package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a stream keeps at most MaxStream items and loses a portion of the oldest at a time, and a check agrees with its
// row.
func TestStreamKeepsItsLastItems(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	most := uint64(0)
	d.write(func(r rows) error {
		for n := uint64(1); n <= MaxStream+1500; n++ {
			s, err := r.findStream(run, "lines")
			if err == nil {
				err = r.putItem(run, "lines", s, &itemRow{Value: []byte{0xc0}})
			}
			if err != nil {
				return err
			}
			if s, err = r.findStream(run, "lines"); err != nil {
				return err
			}
			require.Equal(t, n, s.Last)
			most = max(most, s.Last-s.First+1)
		}
		return nil
	})
	require.EqualValues(t, MaxStream, most)
	items, err := d.Items(t.Context(), run, "lines", 0, 2)
	require.NoError(t, err)
	require.Len(t, items, 2)
	require.EqualValues(t, 2001, items[0].N)
	require.EqualValues(t, 2000, items[0].Skipped)
	require.Zero(t, items[1].Skipped)
	last, err := d.Items(t.Context(), run, "lines", MaxStream+1500, 10)
	require.NoError(t, err)
	require.Len(t, last, 1)
	require.NoError(t, d.Check(t.Context()))
}

// add appends an item of the given size to the stream "lines" of a run.
func (r rows) add(run pawl.ID, size int) error {
	s, err := r.findStream(run, "lines")
	if err != nil {
		return err
	}
	return r.putItem(run, "lines", s, &itemRow{Value: make([]byte, size)})
}

// Rule: a stream keeps at most 8 MiB, also when its oldest items are so small that a portion of them makes no room.
func TestStreamKeepsItsBytes(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	d.write(func(r rows) error {
		for n := range 9000 + 16 {
			size := 1
			if n >= 9000 {
				size = MaxValue
			}
			if err := r.add(run, size); err != nil {
				return err
			}
			s, err := r.findStream(run, "lines")
			if err != nil {
				return err
			}
			require.LessOrEqual(t, s.Bytes, int64(maxStreamBytes), "item %d", s.Last)
		}
		return nil
	})
	require.NoError(t, d.Check(t.Context()))
}

// Rule: a stream whose row a damaged file lost takes no item, since that would overwrite one or begin again at 1.
func TestStreamWithoutItsRow(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	d.write(func(r rows) error {
		require.NoError(t, r.add(run, 1))
		require.NoError(t, r.delete(tableStreams, runAnd(run, "lines")))
		require.ErrorIs(t, r.add(run, 1), pawl.ErrCorrupt)
		return nil
	})
}

// Rule: a full stream whose items a damaged file lost takes no item.
func TestStreamWithoutItsItems(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	d.write(func(r rows) error {
		full := streamRow{First: 1, Last: MaxStream, Bytes: MaxStream}
		require.ErrorIs(t, r.putItem(run, "lines", full, &itemRow{Value: []byte{0xc0}}), pawl.ErrCorrupt)
		return nil
	})
}
