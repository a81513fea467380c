package scenario

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a check finds places that are missing or not in use. A run that lost its number in line keeps its place there when it
// is resumed. A place that was lost is free once more, and the next start of the app frees that of a run that is gone.
func (suite) DamagedPlaces(t *testing.T, k *kit) {
	f := desk(k, workflow.MaxOpen(1))
	k.open(f)
	runs := queueUp(k, f, "", "", "")
	stale := append([]byte("desk\x00\x00\x01"), make([]byte, 16)...)
	k.mutate(func(w driver.Writer) error {
		return w.Put(tablePlaces, stale, driver.Seal(tablePlaces, []byte("other"), nil))
	})
	require.Equal(t, []pawl.ID{runs[0].Run()}, k.info(runs[2].Run()).Holders, "the key of a damaged row may name another run")
	k.mutate(func(w driver.Writer) error { return w.Delete(tablePlaces, stale) })
	k.losePlace(runs[1].Run())
	require.ErrorContains(t, k.e.Check(t.Context()), "resume the run")
	require.NoError(t, k.e.Resume(t.Context(), runs[1].Run()))
	served(k, 0)

	k.mutate(func(w driver.Writer) error { return w.Put(tablePlaces, stale, driver.Seal(tablePlaces, stale, nil)) })
	require.ErrorContains(t, k.e.Check(t.Context()), "is not there")
	k.restart("1")
	require.NoError(t, k.e.Check(t.Context()))
	bye(k, find(k, f, "0"))
	served(k, 0, 1)

	k.losePlace(runs[1].Run())
	require.ErrorContains(t, k.e.Check(t.Context()), "until the run ends")
	bye(k, find(k, f, "1"))
	served(k, 0, 1, 2)
	bye(k, find(k, f, "2"))
	require.Zero(t, k.rowsIn("places"))
}

// mutate changes rows in a mutation.
func (k *kit) mutate(apply func(driver.Writer) error) {
	k.t.Helper()
	require.NoError(k.t, k.q.Mutate(k.t.Context(), ride{apply}, 0))
}

// losePlace removes the row of the only place, or number in line, of a run.
func (k *kit) losePlace(run pawl.ID) {
	k.t.Helper()
	key := k.placeOf(run)
	k.mutate(func(w driver.Writer) error { return w.Delete(tablePlaces, key) })
}

// placeOf returns the key of the row of the only place, or number in line, of a run.
func (k *kit) placeOf(run pawl.ID) (found []byte) {
	k.t.Helper()
	require.NoError(k.t, k.q.ViewRows(k.t.Context(), func(tx driver.Reader) error {
		return tx.Scan(tablePlaces, driver.Span{}, func(key, value []byte) bool {
			if bytes.Contains(key, run[:]) || bytes.Contains(value, run[:]) {
				found = bytes.Clone(key)
			}
			return found == nil
		})
	}))
	require.NotNil(k.t, found)
	return found
}

// rowsIn counts the rows of a table.
func (k *kit) rowsIn(table string) (n int) {
	k.t.Helper()
	require.NoError(k.t, k.q.ViewRows(k.t.Context(), func(tx driver.Reader) error {
		return tx.Scan(tableNamed(table), driver.Span{}, func(_, _ []byte) bool { n++; return true })
	}))
	return n
}
