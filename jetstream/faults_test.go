package jetstream_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/faults"
	"github.com/gopawl/pawl/jetstream"
)

// faulty is the engine amid faults.
var faulty = faults.Engine{
	Open: func(ctx context.Context, place string) (faults.Queue, error) {
		return jetstream.Open(ctx, place, &jetstream.Options{Lease: 2 * time.Second,
			MaxCrashes: jetstream.NoMaxCrashes, Timeout: 5 * time.Second, Logger: hclog.NewNullLogger()})
	},
	Unavailable: jetstream.ErrUnavailable,
}

// The environment of a server until it is killed.
const (
	serveIn   = "PAWL_TEST_SERVE_IN"
	servePort = "PAWL_TEST_SERVE_PORT"
)

// serveUntilKilled is the process of a server. It ends with its parent.
func serveUntilKilled() {
	port, err := strconv.Atoi(os.Getenv(servePort))
	if err == nil {
		_, err = startServer(os.Getenv(serveIn), port)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// serve starts the process of a server, and returns how to kill it.
func serve(t *testing.T, folder string, port int) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveIn+"="+folder, servePort+"="+strconv.Itoa(port))
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = input.Close()
		_ = cmd.Wait()
	})
}

// Rule: over a server that syncs before it answers, no job is lost whose Enqueue returned nil, although
// workers are killed, the server is killed and restarted, and connections are cut.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	port, folder := freePort(t), t.TempDir()
	kill := serve(t, folder, port)
	defer func() { kill() }()
	proxy := faults.NewProxy(t, fmt.Sprintf("127.0.0.1:%d", port))
	place := "nats://" + proxy.Addr
	require.Eventually(t, func() bool {
		q, err := faulty.Open(t.Context(), place)
		return err == nil && q.Close() == nil
	}, time.Minute, 20*time.Millisecond)
	accepted, _ := faulty.Run(t, place, faults.Faults{
		Cut: proxy.Cut,
		Restart: func() {
			kill()
			kill = serve(t, folder, port)
		},
	})
	require.Greater(t, accepted, faults.Jobs(t)/2)
}
