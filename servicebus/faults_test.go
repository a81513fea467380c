package servicebus_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/faults"
	"github.com/gopawl/pawl/servicebus"
)

// faulty is the engine amid faults.
var faulty = faults.Engine{
	Open: func(ctx context.Context, where string) (faults.Queue, error) {
		lock := 10 * time.Second
		if os.Getenv("PAWL_FAULT_JOBS") != "" { // more jobs wait for a renewal, each of which is a request of its own
			lock = time.Minute
		}
		return servicebus.Open(ctx, where, &servicebus.Options{Prefix: fmt.Sprintf("faults.lock%d", lock.Milliseconds()), Lock: lock,
			MaxCrashes: servicebus.NoMaxCrashes, Timeout: 5 * time.Second, Logger: hclog.NewNullLogger()})
	},
	Unavailable: servicebus.ErrUnavailable,
}

// Rule: no job is lost whose Enqueue returned nil, although workers are killed, the stand-in is killed and restarted
// with the messages that it has accepted, and connections are cut.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	here(t)
	journal := filepath.Join(t.TempDir(), "journal")
	s, err := startStandIn("", journal)
	require.NoError(t, err)
	defer func() { s.stop() }()
	proxy := faults.NewProxy(t, "127.0.0.1:"+s.port)
	accepted, _ := faulty.Run(t, place(proxy.Addr), faults.Faults{
		Cut: proxy.Cut,
		Restart: func() {
			s.stop()
			s, err = startStandIn(s.port, journal)
			require.NoError(t, err)
		},
	})
	require.Greater(t, accepted, faults.Jobs(t)/2)
}
