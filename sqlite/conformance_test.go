package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/queuetest"
	"github.com/gopawl/pawl/sqlite"
	"github.com/gopawl/pawl/workflow"
)

var (
	_ admin.FileStore = (*sqlite.Queue)(nil)
	_ admin.Listener  = (*sqlite.Queue)(nil)
	_ workflow.Store  = (*sqlite.Queue)(nil)
)

// Rule: a queue in SQLite keeps the whole contract, with one client at a time.
func TestConformance(t *testing.T) {
	t.Setenv("TMPDIR", memdir.New(t)) // for the suite's folders: it proves nothing about the disk
	open := func(t testing.TB, dir string, s queuetest.Settings) pawl.Queue {
		q, err := sqlite.Open(t.Context(), filepath.Join(dir, "jobs.sqlite"), &sqlite.Options{
			Lease: s.Lease, MaxCrashes: max(s.MaxCrashes, sqlite.NoMaxCrashes), Now: s.Now, Poll: sqlite.NoPoll,
			OnEvent: s.OnEvent, Collector: s.Collector, Logger: hclog.NewNullLogger(),
		})
		require.NoError(t, err)
		return q
	}
	queuetest.Run(t, open, &queuetest.Config{
		Persists: true, Alone: true, Counts: counts, Events: true,
		CounterSteps: 2000, // each step is a commit
	})
}

func counts(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error) {
	stats, err := q.(*sqlite.Queue).Stats(ctx)
	all := make(map[string]pawl.Counts)
	for _, row := range stats.Queues {
		all[row.Name] = row.Counts
	}
	return all, err
}
