package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/faults"
	"github.com/gopawl/pawl/redis"
)

// faulty is the engine for the tests with faults.
var faulty = faults.Engine{
	Open: func(ctx context.Context, place string) (faults.Queue, error) {
		return redis.Open(ctx, place, &redis.Options{Name: "faults", Lease: 2 * time.Second,
			MaxCrashes: redis.NoMaxCrashes, Timeout: time.Minute, Logger: hclog.NewNullLogger()})
	},
	Unavailable: redis.ErrUnavailable,
}

// Rule: over a server that syncs each write, no job is lost whose Enqueue returned nil, although
// workers are killed, the server is killed and restarted, and connections are cut. Every call is
// answered, since the server comes back in time.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	url(t)
	dir := t.TempDir()
	start := func() *server {
		s, err := startServer(dir, "--appendonly", "yes", "--appendfsync", "always")
		require.NoError(t, err)
		return s
	}
	server := start()
	defer func() { server.Stop() }()
	require.NoError(t, pawl.Require(open(t, server.url, redis.Options{NoListen: true}), pawl.Synced|pawl.Shared))
	accepted, refused := faulty.Run(t, server.url, faults.Faults{
		Cut: func() {
			require.NoError(t, connect(t, server.url).Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err())
		},
		Restart: func() {
			server.Stop()
			server = start()
		},
	})
	require.Zero(t, refused)
	require.Equal(t, faults.Jobs(t), accepted, "the server came back in time, so every call has its answer")
}
