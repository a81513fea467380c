package jetstream_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats-server/v2/server/ats"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/jetstream"
	"github.com/gopawl/pawl/queuetest"
)

var _ driver.Able = (*jetstream.Queue)(nil)

// Rule: the queue keeps the contract as far as its server does, over a real server in virtual time.
func TestConformance(t *testing.T) {
	t.Setenv("TMPDIR", memdir.New(t)) // for the suite's folders: it proves nothing about the disk
	ats.Register()                    // so its ticker does not belong to the bubble of the first server
	defer ats.Unregister()
	var folders sync.Map
	open := func(t testing.TB, dir string, s queuetest.Settings) pawl.Queue {
		if _, again := folders.LoadOrStore(dir, true); !again {
			runtime.GC() // a case must not get a timer that an earlier bubble put into the pool of the client
			runtime.GC()
			_, release := use(t, dir) // the server outlives each client
			t.Cleanup(release)
		}
		return connect(t, dir, jetstream.Options{
			Lease: s.Lease, MaxCrashes: max(s.MaxCrashes, jetstream.NoMaxCrashes),
			OnEvent: s.OnEvent, Collector: s.Collector, Logger: hclog.NewNullLogger(),
		})
	}
	queuetest.Run(t, open, &queuetest.Config{
		Persists: true, MaxBatch: 1, Another: open, Events: true, Walks: 1, CounterSteps: 100,
		Known: map[string]string{"events/from many at once": "the server may deliver a retry before it answers the nack"},
		Reduced: queuetest.Reduced{
			Delays: 250 * time.Millisecond, Waits: 2 * time.Second, Orphans: 2 * time.Second, IDs: 2 * time.Minute,
			Lags: true, Unordered: true, NoSuspects: true, OwnClock: true, MaxName: 42,
		},
		Counts: func(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error) {
			stats, err := q.(*client).Stats(ctx)
			all := make(map[string]pawl.Counts)
			for _, row := range stats.Queues {
				all[row.Name] = row.Counts
			}
			return all, err
		},
	})
}
