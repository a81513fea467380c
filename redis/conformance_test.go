package redis_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	client "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/queuetest"
	"github.com/gopawl/pawl/redis"
)

var (
	_ admin.Store    = (*redis.Queue)(nil)
	_ admin.Listener = (*redis.Queue)(nil)
)

// Rule: a queue on a Redis server keeps the contract, with one client and with several.
func TestConformance(t *testing.T) {
	t.Parallel()
	where := url(t)
	var names sync.Map // by folder
	open := func(poll time.Duration) queuetest.Open {
		return func(t testing.TB, dir string, s queuetest.Settings) pawl.Queue {
			name, _ := names.LoadOrStore(dir, newName())
			now := s.Now
			if now == nil {
				now = time.Now // which is virtual, unlike the clock of the server
			}
			q, err := redis.Open(t.Context(), where, &redis.Options{
				Name: name.(string), Poll: poll, NoListen: true, // a message does not come in virtual time
				Lease: s.Lease, MaxCrashes: max(s.MaxCrashes, redis.NoMaxCrashes), Now: now,
				OnEvent: s.OnEvent, Collector: s.Collector, Logger: hclog.NewNullLogger(),
				Configure: func(o *client.Options) { o.ReadTimeout, o.WriteTimeout = -2, -2 }, // which would be virtual
			})
			require.NoError(t, err)
			return q
		}
	}
	queuetest.Run(t, open(redis.NoPoll), &queuetest.Config{
		Persists: true, Another: open(10 * time.Second), Counts: counts, Events: true, Parallel: true,
		Walks: race.Fewer(4), CounterSteps: race.Fewer(2000), // each step is one call of the script
	})
}

func counts(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error) {
	stats, err := q.(*redis.Queue).Stats(ctx)
	all := make(map[string]pawl.Counts)
	for _, row := range stats.Queues {
		all[row.Name] = row.Counts
	}
	return all, err
}
