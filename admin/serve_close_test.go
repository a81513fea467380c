//go:build unix

package admin

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// A server removes only its own socket and note: the file may have been replaced, and another
// app may serve the new one.
func TestCloseRemovesOnlyItsOwn(t *testing.T) {
	q := openLive(t)
	s := serveTest(t, q)
	folder := q.Path() + ".admin"
	for _, name := range []string{"socket", "server.json"} {
		require.NoError(t, os.Remove(filepath.Join(folder, name)))
	}
	other, err := net.Listen("unix", filepath.Join(folder, "socket"))
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "server.json"), nil, 0o600))
	require.NoError(t, s.Close())
	require.FileExists(t, filepath.Join(folder, "server.json"))
	require.Equal(t, fs.ModeSocket, modeOf(t, filepath.Join(folder, "socket")).Type())
}

// If the queue is closed first, every client gets an error, and nothing hangs.
func TestQueueClosedFirst(t *testing.T) {
	q := openLive(t)
	s := serveTest(t, q)
	a, err := Dial(context.Background(), s.Addr(), nil)
	require.NoError(t, err)
	defer a.Close()
	ended := make(chan error)
	go func() {
		for _, err := range a.Events(context.Background()) {
			ended <- err
		}
	}()
	require.NoError(t, q.Close())
	require.ErrorIs(t, <-ended, pawl.ErrClosed)
	_, err = a.Stats(context.Background())
	require.ErrorIs(t, err, pawl.ErrClosed)
	require.ErrorIs(t, withid.Enqueue(context.Background(), a, &pawl.Envelope{Kind: "k"}), pawl.ErrClosed)
	require.NoError(t, s.Close())
}

// Close ends streams with their reason, and leaves no goroutine or descriptor.
func TestCloseLeavesNothing(t *testing.T) {
	q := openLive(t)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	s, err := Serve(q, &Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	a, err := Dial(context.Background(), s.Addr(), nil)
	require.NoError(t, err)
	const n = 5
	ended := make(chan error, n)
	begun := make(chan struct{}, n)
	for range n {
		go func() {
			received := false
			for _, err := range a.Events(context.Background()) {
				if err != nil {
					ended <- err
				} else if !received {
					received = true
					begun <- struct{}{}
				}
			}
		}()
	}
	idle, err := net.Dial("unix", strings.TrimPrefix(s.Addr(), "unix://"))
	require.NoError(t, err)
	defer idle.Close()
	for len(begun) < n { // until each of them listens
		require.NoError(t, withid.Enqueue(context.Background(), q, &pawl.Envelope{Kind: "k"}))
	}
	require.NoError(t, s.Close())
	for range n {
		require.ErrorIs(t, <-ended, ErrUnreachable)
	}
	require.NoError(t, a.Close())
	require.NoError(t, idle.Close())
	requireSettled(t, goroutines, files)
	_, err = Dial(context.Background(), s.Addr(), nil)
	require.ErrorIs(t, err, ErrUnreachable)
}

// A client that has connected but sent no request when the server closes learns that, and not
// that there are too many clients.
func TestCloseReportsWhoHasNotAsked(t *testing.T) {
	s := serveTest(t, openLive(t))
	conn, err := net.Dial("unix", strings.TrimPrefix(s.Addr(), "unix://"))
	require.NoError(t, err)
	defer conn.Close()
	c, err := Dial(context.Background(), s.Addr(), nil) // it comes after the other, which therefore has its connection
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	status, body := answerOf(t, conn)
	require.Equal(t, 503, status)
	require.Contains(t, body, `"unreachable"`)
	require.Contains(t, body, "it is closing the admin server")
}

// openFiles returns the number of descriptors of the process, -1 if the system does not report
// it.
func openFiles(t testing.TB) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(names)
}

// requireSettled requires that goroutines and descriptors return to the given numbers. A
// finished goroutine may take a moment to vanish.
func requireSettled(t testing.TB, goroutines, files int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return runtime.NumGoroutine() <= goroutines+1 && openFiles(t) <= files // plus the goroutine of this check
	}, testTimeout, time.Millisecond, "goroutines or descriptors are left")
}

// Attempts that end are counted for each queue, from when the process begins to serve.
func TestServerCountsRuns(t *testing.T) {
	q := openLive(t)
	ctx := context.Background()
	run := func(queue string, end func(*pawl.Lease) error) {
		require.NoError(t, withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "k", Queue: queue, MaxRetries: 3}))
		leases, err := q.Fetch(ctx, pawl.Request{Queues: []string{queue}, Max: 1, Wait: pawl.WaitNot})
		require.NoError(t, err)
		require.NoError(t, end(leases[0]))
	}
	ack := func(l *pawl.Lease) error { return q.Settle(ctx, l.Ack()) }
	run("before", ack)
	s := serveTest(t, q)
	a, err := Dial(ctx, s.Addr(), nil)
	require.NoError(t, err)
	defer a.Close()
	run("a", ack)
	run("a", ack)
	run("a", func(l *pawl.Lease) error { return q.Settle(ctx, l.Nack(time.Hour, errors.New("no"))) })
	run("b\xff", func(l *pawl.Lease) error { return q.Settle(ctx, l.Abandon(pawl.ReasonExhausted, errors.New("no"))) })
	run("b\xff", func(l *pawl.Lease) error { return q.Settle(ctx, l.Abandon(pawl.ReasonSignature, errors.New("no"))) })
	run("c", func(l *pawl.Lease) error { return q.Settle(ctx, l.Release()) })
	require.NoError(t, a.Pause(ctx, "a")) // the next event arrives after all earlier ones
	stats, err := a.Stats(ctx)
	require.NoError(t, err)
	want := map[string]Done{"a": {2, 1}, "b\xff": {0, 1}}
	require.Equal(t, want, stats.Done)

	require.NoError(t, s.Close())
	run("late", ack)
	require.NoError(t, q.Resume(ctx, "a"))
	require.Equal(t, want, s.tally.done(), "a server that is closed does not listen")
}
