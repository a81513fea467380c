package bolt_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/queuetest"
)

func TestConformance(t *testing.T) {
	open := func(t testing.TB, dir string, s queuetest.Settings) pawl.Queue {
		path := filepath.Join(dir, "jobs.db")
		q, err := bolt.Open(path, &bolt.Options{
			Lease: s.Lease, MaxCrashes: max(s.MaxCrashes, bolt.NoMaxCrashes), Now: s.Now,
			OnEvent: s.OnEvent, Collector: s.Collector,
			Logger: hclog.NewNullLogger(),
		})
		require.NoError(t, err)
		t.Cleanup(func() { requireReadable(t, path) })
		return q
	}
	queuetest.Run(t, open, &queuetest.Config{
		Restart: true,
		Counts:  counts,
		Events:  true,

		CounterSteps: 5000, // each of them waits for the disk
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

// requireReadable reads every job of a file that is closed. The counts are those of
// the jobs.
func requireReadable(t testing.TB, path string) {
	t.Helper()
	r, err := bolt.OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	stats, err := r.Stats(context.Background())
	require.NoError(t, err)
	for _, row := range stats.Queues {
		var found pawl.Counts
		for e, err := range r.Jobs(context.Background(), pawl.Filter{Queue: row.Name}) {
			require.NoError(t, err)
			*found.Of(e.State)++
		}
		require.Equal(t, row.Counts, found)
	}
}
