package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/workflow"
)

// Everything stored of a run is transferred, wherever the queue is.
func TestSuiteTransfer(t *testing.T) { runSuite(t, transferCases) }

// elsewhere returns a queue in its own file, with the clock of the fixture.
func elsewhere(t *testing.T, s *suiteTest) *bolt.Queue {
	t.Helper()
	q, err := bolt.Open(filepath.Join(memdir.New(t), "to.db"), &bolt.Options{Logger: hclog.NewNullLogger(), Now: s.now, Lease: busy.Lease()})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, workflow.Read(q).Check(context.Background()))
		require.NoError(t, q.Check(context.Background()))
		require.NoError(t, q.Close())
	})
	return q
}

var transferCases = []suiteCase{
	// Except a run that waits for a signal or another run: it checks once whether that has
	// arrived.
	{"an export has all runs and an import stores them as they were", someRuns, nil, func(t *testing.T, s *suiteTest) {
		var b bytes.Buffer
		exported, err := Export(t.Context(), s, &b, nil)
		require.NoError(t, err)
		require.Equal(t, Exported{Queues: 2, Jobs: 4, Runs: 5}, exported)
		to := elsewhere(t, s)
		_, err = Import(t.Context(), Of(to), bytes.NewReader(b.Bytes()), &ImportOptions{KeepIDs: true})
		require.NoError(t, err)
		require.ElementsMatch(t, runLines(b.String()), runLines(exportOf(t, Of(to))))
		for name, run := range runsByName {
			want, err := s.Workflows().Show(t.Context(), run, RunValues)
			require.NoError(t, err)
			got, err := Of(to).Workflows().Show(t.Context(), run, RunValues)
			require.NoError(t, err)
			if want.Status == workflow.Waiting {
				require.Equal(t, workflow.Running, got.Status, name)
				got.Status, got.Due, got.Waits = want.Status, want.Due, want.Waits
			}
			wanted, err := json.Marshal(WorkflowDetailOf(want, PayloadBase64))
			require.NoError(t, err)
			gotten, err := json.Marshal(WorkflowDetailOf(got, PayloadBase64))
			require.NoError(t, err)
			require.JSONEq(t, string(wanted), string(gotten), name)
		}
	}},
	{"an import stores runs and refuses those that are there", nil, nil, func(t *testing.T, s *suiteTest) {
		from := newFixture(t, someRuns)
		export := exportOf(t, Of(from.q))
		imported, err := Import(t.Context(), s, bytes.NewReader([]byte(export)), nil)
		require.NoError(t, err)
		require.Equal(t, Imported{Version: ExportVersion, Checked: 4, Jobs: 4, Runs: 5}, imported)
		require.Len(t, names(t, s.Workflows(), WorkflowQuery{}), 5)
		_, err = Import(t.Context(), s, bytes.NewReader([]byte(export)), nil)
		require.ErrorIs(t, err, pawl.ErrConflict)
		again, err := Import(t.Context(), s, bytes.NewReader([]byte(export)), &ImportOptions{SkipExisting: true})
		require.NoError(t, err)
		require.Equal(t, Imported{Version: ExportVersion, Checked: 4, Skipped: 4, RunsSkipped: 5}, again)
		require.Len(t, runLines(exportOf(t, s)), 5)
	}},
	{"rows of no run and a place that is none", someRuns, nil, func(t *testing.T, s *suiteTest) {
		w := s.Workflows()
		_, err := w.Rows(t.Context(), pawl.ID{1}, "")
		require.ErrorIs(t, err, workflow.ErrNotFound)
		for _, after := range []string{"x", "AAAA", "////", "_-_-_-_-_-_-_-_-_"} {
			_, err = w.Rows(t.Context(), runsByName["nap:1"], after)
			require.ErrorIs(t, err, pawl.ErrInvalid, after)
		}
		rows, err := w.Rows(t.Context(), runsByName["nap:1"], "")
		require.NoError(t, err)
		require.True(t, rows.Last())
		require.Equal(t, pawl.Delayed, rows.Job.State)
		require.ErrorIs(t, w.RestoreRows(t.Context(), &rows), workflow.ErrConflict)
		other := rows
		other.Run = pawl.ID{2}
		require.ErrorIs(t, w.RestoreRows(t.Context(), &other), workflow.ErrConflict, "the name is taken")
	}},
	{"a damaged run is damaged in what is read of it", someRuns, spoilRow("steps", "order:1"), func(t *testing.T, s *suiteTest) {
		_, err := s.Workflows().Rows(t.Context(), runsByName["order:1"], "")
		require.ErrorIs(t, err, pawl.ErrCorrupt)
	}},
}
