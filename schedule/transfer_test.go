package schedule_test

import (
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/schedule"
)

// filled returns a manager of a store with a schedule that has fired.
func filled(t testing.TB, q schedule.Store) *schedule.Manager {
	m := schedule.Manage(q, nil)
	require.NoError(t, m.Put(t.Context(), schedule.Job("a", "@hourly", pawl.Define[string]("tick"), "x")))
	_, err := m.Trigger(t.Context(), "a")
	require.NoError(t, err)
	return m
}

// Rule: rows from any source are stored or refused. They never cause a panic.
func FuzzRows(f *testing.F) {
	q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
	rows, err := filled(f, q).Rows(f.Context(), "", 1)
	require.NoError(f, err)
	f.Add("b", rows[0].Row, rows[0].History[0].N, rows[0].History[0].Value)
	f.Fuzz(func(t *testing.T, name string, row []byte, n uint64, value []byte) {
		rows := &schedule.Rows{Name: name, Form: schedule.RowsForm, Row: row, History: []schedule.HistoryRow{{N: n, Value: value}}}
		if schedule.CheckRows(rows) != nil {
			return
		}
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer q.Close()
		m := schedule.Manage(q, nil)
		require.NoError(t, m.RestoreRows(t.Context(), rows))
		_, err := m.Get(t.Context(), name)
		require.NoError(t, err)
		_, err = m.Trigger(t.Context(), name)
		if err != nil {
			require.ErrorIs(t, err, pawl.ErrInvalid)
		}
	})
}

// Rule: a compacted file, a backup, and a salvaged file have the schedules of the original.
func TestCopiesOfAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "jobs.db")
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	m := filled(t, q)
	want, err := m.Rows(t.Context(), "", 1)
	require.NoError(t, err)
	require.NoError(t, q.Compact(t.Context(), filepath.Join(dir, "compacted.db")))
	require.NoError(t, q.Backup(t.Context(), filepath.Join(dir, "backup.db")))
	require.NoError(t, q.Close())
	_, err = bolt.Salvage(t.Context(), path, filepath.Join(dir, "salvaged.db"))
	require.NoError(t, err)
	for _, name := range []string{"compacted", "backup", "salvaged"} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(dir, name+".db")
			q, err := bolt.Open(to, &bolt.Options{Logger: hclog.NewNullLogger()})
			require.NoError(t, err)
			defer q.Close()
			rows, err := schedule.Read(q).Rows(t.Context(), "", 1)
			require.NoError(t, err)
			require.Equal(t, want, rows)
		})
	}
}
