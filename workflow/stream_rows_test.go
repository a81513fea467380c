package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"
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
