package bolt

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/internal/kills"
)

// Rule: a transaction of the app moves members together with their counts, and a transaction that is
// rolled back moves neither.
func TestGroupInATransaction(t *testing.T) {
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), crashOptions())
	kills.MakeGroup(t, q)
	back := errors.New("back")
	enqueue := func(tx *bbolt.Tx) error {
		_, err := q.EnqueueTx(tx, &pawl.Envelope{Kind: "k", Group: "g"})
		return err
	}
	require.ErrorIs(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return errors.Join(enqueue(tx), back) }), back)
	require.NoError(t, q.Update(t.Context(), enqueue))
	require.NoError(t, group.Close(t.Context(), q, "g"))
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 2})
	require.NoError(t, err)
	require.Len(t, leases, 1)
	require.ErrorIs(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return errors.Join(q.AckTx(tx, leases[0]), back) }), back)
	done, _ := kills.Callbacks(t, q)
	require.Zero(t, done)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return q.AckTx(tx, leases[0]) }))
	done, success := kills.Callbacks(t, q)
	require.Equal(t, [2]int{1, 1}, [2]int{done, success})
	require.NoError(t, q.Check(t.Context()))
}

// changeGroup changes the row of the group behind the queue's back.
func changeGroup(t *testing.T, q *Queue, fn func(row *driver.GroupRow)) {
	t.Helper()
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		w := &tables{tx: tx}
		row, err := driver.ReadGroup(w, "g")
		require.NoError(t, err)
		fn(row)
		return driver.PutGroup(w, "g", row)
	}))
}

// Rule: Check finds a group that does not count what is there.
func TestCheckOfGroups(t *testing.T) {
	for name, damage := range map[string]func(row *driver.GroupRow){
		"a pending member": func(row *driver.GroupRow) { row.Pending, row.Total = row.Pending+1, row.Total+1 },
		"a dead member":    func(row *driver.GroupRow) { row.Dead, row.Total = row.Dead+1, row.Total+1 },
		"a sum":            func(row *driver.GroupRow) { row.Total++ },
	} {
		t.Run(name, func(t *testing.T) {
			q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), crashOptions())
			kills.MakeGroup(t, q, "k", "k")
			require.NoError(t, q.Check(t.Context()))
			var was driver.GroupRow
			changeGroup(t, q, func(row *driver.GroupRow) { was = *row; damage(row) })
			require.ErrorContains(t, q.Check(t.Context()), `group "g"`)
			changeGroup(t, q, func(row *driver.GroupRow) { *row = was })
			require.NoError(t, q.Check(t.Context()))
		})
	}
}

// Rule: Salvage counts the members of a group again. Closing it again then enqueues what is due.
func TestSalvageOfGroups(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "from.db"), filepath.Join(folder, "to.db")
	q, err := Open(from, crashOptions()) // without the check of the file at the end
	require.NoError(t, err)
	kills.MakeGroup(t, q, "k", "k")
	require.NoError(t, group.Close(t.Context(), q, "g"))
	changeGroup(t, q, func(row *driver.GroupRow) { // as if two more members had been lost
		row.Pending, row.Dead, row.Total = row.Pending+1, row.Dead+1, row.Total+2
	})
	require.NoError(t, q.Close())
	_, err = Salvage(t.Context(), from, to)
	require.NoError(t, err)

	q = openAt(t, to, crashOptions())
	require.NoError(t, q.Check(t.Context()))
	s, err := group.Get(t.Context(), q, "g")
	require.NoError(t, err)
	require.Equal(t, [...]int{4, 2, 0, 0, 2}, [...]int{s.Total, s.Pending, s.Succeeded, s.Dead, s.Removed})
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 2})
	require.NoError(t, err)
	require.NoError(t, q.Settle(t.Context(), leases[0].Ack(), leases[1].Ack()))
	done, success := kills.Callbacks(t, q)
	require.Equal(t, [2]int{1, 0}, [2]int{done, success})
	require.NoError(t, q.Close())
}
