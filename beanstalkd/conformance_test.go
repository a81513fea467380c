package beanstalkd_test

import (
	"context"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/beanstalkd"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/queuetest"
)

var _ driver.Able = (*beanstalkd.Queue)(nil)

// Rule: the queue keeps the contract except for the cases that are known to fail, each of which has
// a reason. The server is the real one, so time moves in the cases and not on the server.
func TestConformance(t *testing.T) {
	t.Parallel()
	where := url(t)
	var prefixes sync.Map
	open := func(t testing.TB, dir string, s queuetest.Settings) pawl.Queue {
		prefix, _ := prefixes.LoadOrStore(dir, newPrefix())
		q, err := beanstalkd.Open(context.Background(), where, &beanstalkd.Options{
			Prefix: prefix.(string), Lease: s.Lease, MaxCrashes: s.MaxCrashes,
			OnEvent: s.OnEvent, Collector: s.Collector, Logger: hclog.NewNullLogger(),
		})
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	queuetest.Run(t, open, &queuetest.Config{
		Persists: true, MaxBatch: 1, Another: open, Events: true, Parallel: true, Walks: 1, CounterSteps: 100, Known: known,
		Reduced: queuetest.Reduced{NoSuspects: true, AnyID: true, OwnClock: true, MaxName: 30},
		Counts: func(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error) {
			stats, err := q.(*beanstalkd.Queue).Stats(ctx)
			all := make(map[string]pawl.Counts)
			for _, row := range stats.Queues {
				all[row.Name] = row.Counts
			}
			return all, err
		},
	})
}
