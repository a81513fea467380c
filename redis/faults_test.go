package redis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/redis"
	"github.com/gopawl/pawl/worker"
)

// The environment of a process that works until it is killed.
const (
	workOn = "PAWL_TEST_WORK_ON" // the place of the queue
	doneIn = "PAWL_TEST_DONE_IN" // the file that gets a line for each run
)

var number = pawl.Define[int]("number", pawl.Backoff(pawl.Fixed(time.Second)))

func faultOptions() *redis.Options {
	return &redis.Options{Name: "faults", Lease: 2 * time.Second, MaxCrashes: redis.NoMaxCrashes,
		Timeout: time.Minute, Logger: hclog.NewNullLogger()}
}

// newRecorder returns a worker that appends the numbers of its jobs to a file.
func newRecorder(q pawl.Queue, path string) (*worker.Worker, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	w := worker.New(q, &worker.Options{Concurrency: 8, Logger: hclog.NewNullLogger()})
	worker.Handle(w, number, func(_ context.Context, j *pawl.Job[int]) error {
		_, err := fmt.Fprintln(f, j.Args)
		return err
	})
	return w, nil
}

// workUntilKilled is the process that works. It ends with its parent.
func workUntilKilled() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		q, err := redis.Open(context.Background(), os.Getenv(workOn), faultOptions())
		if err != nil {
			time.Sleep(5 * time.Millisecond) // the server is away
			continue
		}
		w, err := newRecorder(q, os.Getenv(doneIn))
		if err == nil {
			err = w.Run(context.Background())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child starts a process that works, and returns how to kill it.
func child(t *testing.T, where, path string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workOn+"="+where, doneIn+"="+path)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return func() {
		_ = cmd.Process.Kill()
		_ = input.Close()
		_ = cmd.Wait()
	}
}

// faultJobs is how many jobs the test of faults enqueues: 2 000, or as many as the environment says.
func faultJobs(t *testing.T) int {
	text := os.Getenv("PAWL_FAULT_JOBS")
	if text == "" {
		return 2000
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// producing enqueues jobs from 16 goroutines, and calls each after each job.
func producing(t *testing.T, q pawl.Queue, jobs int, each func(n int)) (acknowledged []atomic.Bool, unknown int64) {
	var next, doubtful atomic.Int64
	var producers sync.WaitGroup
	acknowledged = make([]atomic.Bool, jobs)
	tick := make(chan struct{}, jobs)
	for range 16 {
		producers.Go(func() {
			for n := int(next.Add(1)) - 1; n < jobs; n = int(next.Add(1)) - 1 {
				_, err := number.Enqueue(t.Context(), q, n)
				switch {
				case err == nil:
					acknowledged[n].Store(true)
				case errors.Is(err, pawl.ErrUnknownOutcome) || errors.Is(err, redis.ErrUnavailable):
					doubtful.Add(1)
				default:
					t.Errorf("enqueue: %v", err)
				}
				tick <- struct{}{}
			}
		})
	}
	for n := range jobs {
		<-tick
		each(n)
	}
	producers.Wait()
	return acknowledged, doubtful.Load()
}

// recorded returns how often each job ran.
func recorded(t *testing.T, path string) map[int]int {
	runs := make(map[int]int)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		require.NoError(t, err)
		runs[n]++
	}
	return runs
}

// Rule: over a server that syncs each write, no job is lost whose Enqueue returned nil, although
// workers are killed, the server is killed and restarted, and connections are cut. Every call is
// answered, since the server comes back in time.
func TestNothingIsLost(t *testing.T) {
	url(t)
	dir := t.TempDir()
	start := func() *server {
		s, err := startServer(dir, "--appendonly", "yes", "--appendfsync", "always")
		require.NoError(t, err)
		return s
	}
	server := start()
	defer func() { server.stop() }()
	path := filepath.Join(t.TempDir(), "done")
	kills := []func(){child(t, server.url, path), child(t, server.url, path)}
	defer func() {
		for _, kill := range kills {
			kill()
		}
	}()
	q, err := redis.Open(t.Context(), server.url, faultOptions())
	require.NoError(t, err)
	defer q.Close()
	require.NoError(t, pawl.Require(q, pawl.Synced|pawl.Shared))

	jobs := faultJobs(t)
	const faults = 12
	acknowledged, unknown := producing(t, q, jobs, func(n int) {
		if n%(jobs/faults) != jobs/faults/2 {
			return
		}
		switch fault := n / (jobs / faults); fault % 3 {
		case 0:
			kills[fault%2]()
			kills[fault%2] = child(t, server.url, path)
		case 1:
			require.NoError(t, connect(t, server.url).Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err())
		case 2:
			server.stop()
			server = start()
		}
	})
	last := open(t, server.url, *faultOptions())
	w, err := newRecorder(last, path)
	require.NoError(t, err)
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	runs := recorded(t, path)
	accepted, lost, again := 0, 0, 0
	for n := range acknowledged {
		if acknowledged[n].Load() {
			accepted++
			if runs[n] == 0 {
				lost++
			}
		}
		again += max(0, runs[n]-1)
	}
	t.Logf("%d jobs acknowledged, %d with an unknown outcome; lost %d, run again %d", accepted, unknown, lost, again)
	require.Zero(t, lost)
	require.Equal(t, jobs, accepted, "the server came back in time, so every call has its answer")
	stats, err := last.Stats(t.Context())
	require.NoError(t, err)
	for _, row := range stats.Queues {
		require.Zero(t, row.Counts)
	}
}
