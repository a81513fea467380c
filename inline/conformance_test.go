package inline_test

import (
	"context"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/inline"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/queuetest"
)

var (
	_ dlq.Store   = (*inline.Queue)(nil)
	_ driver.Able = (*inline.Queue)(nil)
)

// Rule: as long as no worker takes its jobs, the queue has the whole contract.
func TestConformance(t *testing.T) {
	t.Setenv("TMPDIR", memdir.New(t)) // for the folders of the suite, which stay empty
	open := func(_ testing.TB, _ string, s queuetest.Settings) pawl.Queue {
		return inline.New(&memory.Options{Lease: s.Lease, MaxCrashes: s.MaxCrashes, Now: s.Now,
			OnEvent: s.OnEvent, Collector: s.Collector, Limits: s.Limits, Logger: hclog.NewNullLogger()})
	}
	queuetest.Run(t, open, &queuetest.Config{
		Walks: race.Fewer(4), CounterSteps: 2000, Events: true,
		Counts: func(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error) {
			stats, err := q.(*inline.Queue).Stats(ctx)
			all := make(map[string]pawl.Counts)
			for _, row := range stats.Queues {
				all[row.Name] = row.Counts
			}
			return all, err
		},
	})
}
