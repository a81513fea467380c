package beanstalkd_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/beanstalkd"
	"github.com/gopawl/pawl/internal/faults"
)

// faulty is the engine amid faults.
var faulty = faults.Engine{
	Open: func(ctx context.Context, place string) (faults.Queue, error) {
		return beanstalkd.Open(ctx, place, &beanstalkd.Options{Prefix: "faults", Lease: 2 * time.Second,
			MaxCrashes: beanstalkd.NoMaxCrashes, Timeout: 5 * time.Second, Logger: hclog.NewNullLogger()})
	},
	Unavailable: beanstalkd.ErrUnavailable,
}

// Rule: over a server with -b and -f0, no job is lost whose Enqueue returned nil, although workers
// are killed, the server is killed and restarted, and connections are cut.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	url(t)
	port, folder := "", t.TempDir()
	start := func() *server {
		s, err := startServer(port, "-b", folder, "-f0")
		require.NoError(t, err)
		return s
	}
	server := start()
	port = server.port // also after a restart
	defer func() { server.Stop() }()
	proxy := faults.NewProxy(t, "127.0.0.1:"+port)
	accepted, _ := faulty.Run(t, "beanstalkd://"+proxy.Addr, faults.Faults{
		Cut: proxy.Cut,
		Restart: func() {
			server.Stop()
			server = start()
		},
	})
	require.Greater(t, accepted, faults.Jobs(t)/2)
}

// Rule: while the server is away, an enqueue over a new connection is refused, and its outcome is known, even if a proxy
// in front of the server accepts the connection.
func TestProxyWithoutServer(t *testing.T) {
	proxy := faults.NewProxy(t, strings.TrimPrefix(url(t), "beanstalkd://"))
	q := open(t, "beanstalkd://"+proxy.Addr, beanstalkd.Options{})
	proxy.Down()
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.Error(t, err) // over the connection that was cut
	for range 10 {
		_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
		require.ErrorIs(t, err, beanstalkd.ErrUnavailable)
		require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
	}
	proxy.Up()
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.NoError(t, err)
}
