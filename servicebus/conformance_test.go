package servicebus_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/queuetest"
	"github.com/gopawl/pawl/servicebus"
)

var _ driver.Able = (*servicebus.Queue)(nil)

// naming is a queue that names the kinds in requests for every kind, which Service Bus cannot list: those of the jobs that
// its clients have enqueued.
type naming struct {
	*servicebus.Queue
	kinds *kindSet
}

type kindSet struct {
	mu sync.Mutex
	of map[string]bool
}

func (s *kindSet) add(jobs ...*pawl.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range jobs {
		if e != nil && e.Kind != "" {
			s.of[e.Kind] = true
		}
	}
}

func (s *kindSet) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.of))
}

// Enqueue implements [pawl.Enqueuer].
func (q naming) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	done, err := q.Queue.Enqueue(ctx, jobs...)
	if err == nil {
		q.kinds.add(jobs...)
	}
	return done, err
}

// Fetch implements [pawl.Queue]. A fetch that waits looks for new kinds every second.
func (q naming) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	if r.Kinds != nil {
		return q.Queue.Fetch(ctx, r)
	}
	for {
		if r.Kinds = q.kinds.names(); len(r.Kinds) == 0 {
			r.Kinds = []string{"k"}
		}
		if r.Wait == pawl.WaitNot {
			return q.Queue.Fetch(ctx, r)
		}
		looks, cancel := context.WithTimeout(ctx, time.Second)
		leases, err := q.Queue.Fetch(looks, r)
		again := looks.Err() != nil && ctx.Err() == nil && len(leases) == 0
		cancel()
		if !again {
			return leases, err
		}
	}
}

// Rule: the queue keeps the contract as far as its service does, over the stand-in in virtual time.
func TestConformance(t *testing.T) {
	t.Parallel()
	here(t)
	var brokers, kinds sync.Map // by folder
	open := func(t testing.TB, dir string, s queuetest.Settings) pawl.Queue {
		known, _ := kinds.LoadOrStore(dir, &kindSet{of: make(map[string]bool)})
		b, again := brokers.Load(dir)
		if !again {
			b = newBroker(t)
			brokers.Store(dir, b)
		}
		lease := cmp.Or(s.Lease, 30*time.Second)
		lock := min(lease+2*time.Second, lease*5/4)
		q, err := servicebus.OpenOver(place("127.0.0.1:1"), &servicebus.Options{
			Prefix: fmt.Sprintf("lock%d", lock.Milliseconds()), Lock: lock, MaxCrashes: max(s.MaxCrashes, servicebus.NoMaxCrashes),
			MaxMessage: 2 << 20, OnEvent: s.OnEvent, Collector: s.Collector, Logger: hclog.NewNullLogger(),
		}, b.(*broker).connect)
		require.NoError(t, err)
		return naming{q, known.(*kindSet)}
	}
	queuetest.Run(t, open, &queuetest.Config{
		Persists: true, MaxBatch: 1, Another: open, Events: true, Parallel: true, Walks: 1, CounterSteps: 100,
		Known: map[string]string{
			"kinds/many kinds":         "each of its 300 kinds has a link of its own, which takes minutes",
			"events/from many at once": "the service may deliver a retry before it answers the nack",
		},
		Reduced: queuetest.Reduced{
			Delays: time.Millisecond, Waits: 2500 * time.Millisecond, Looks: 2500 * time.Millisecond, Orphans: 2 * time.Second,
			Unordered: true, NoSuspects: true, AnyID: true, OwnClock: true, MaxName: 40,
		},
		Counts: func(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error) {
			stats, err := q.(naming).Stats(ctx)
			all := make(map[string]pawl.Counts)
			for _, row := range stats.Queues {
				all[row.Name] = row.Counts
			}
			return all, err
		},
	})
}
