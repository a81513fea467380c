package memory_test

import (
	"context"
	"testing"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/queuetest"
)

var _ dlq.Store = (*memory.Queue)(nil)

func TestConformance(t *testing.T) {
	t.Setenv("TMPDIR", memdir.New(t)) // for the folders of the suite, which stay empty
	open := func(_ testing.TB, _ string, s queuetest.Settings) pawl.Queue { return newQueue(s) }
	queuetest.Run(t, open, &queuetest.Config{
		Walks: race.Fewer(20), CounterSteps: 2000, // fewer do not meet every counter
		Counts: counts, Events: true,
	})
}

func counts(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error) {
	stats, err := q.(*memory.Queue).Stats(ctx)
	all := make(map[string]pawl.Counts)
	for _, row := range stats.Queues {
		all[row.Name] = row.Counts
	}
	return all, err
}
