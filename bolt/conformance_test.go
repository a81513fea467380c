package bolt_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/queuetest"
)

func TestConformance(t *testing.T) {
	t.Setenv("TMPDIR", bolt.MemoryFolder(t)) // for the suite's folders: it proves nothing about the disk
	open := func(t testing.TB, dir string, s queuetest.Settings) pawl.Queue {
		path := filepath.Join(dir, "jobs.db")
		q, err := bolt.Open(path, &bolt.Options{
			Lease: s.Lease, MaxCrashes: max(s.MaxCrashes, bolt.NoMaxCrashes), Now: s.Now,
			OnEvent: s.OnEvent, Collector: s.Collector, Limits: s.Limits,
			Logger: hclog.NewNullLogger(),
		})
		require.NoError(t, err)
		t.Cleanup(func() { bolt.CheckFile(t, path) })
		return q
	}
	queuetest.Run(t, open, &queuetest.Config{
		Persists: true,
		Alone:    true,
		Counts:   counts,
		Events:   true,

		Walks:        race.Fewer(4),
		CounterSteps: 2000, // each step is a commit, and fewer do not meet every counter
	})
}

func counts(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error) {
	stats, err := q.(*bolt.Queue).Stats(ctx)
	all := make(map[string]pawl.Counts)
	for _, row := range stats.Queues {
		all[row.Name] = row.Counts
	}
	return all, err
}
