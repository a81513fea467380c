package jetstream_test

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
	"github.com/gopawl/pawl/jetstream"
	"github.com/gopawl/pawl/worker"
)

// The environment of a process that works until it is killed.
const (
	workOn = "PAWL_TEST_WORK_ON" // the place of the queue
	doneIn = "PAWL_TEST_DONE_IN" // the file that gets a line for each run
)

var number = pawl.Define[int]("number", pawl.Backoff(pawl.Fixed(time.Second)))

func faultOptions() *jetstream.Options {
	return &jetstream.Options{Lease: 2 * time.Second, MaxCrashes: jetstream.NoMaxCrashes, Timeout: 5 * time.Second, Logger: hclog.NewNullLogger()}
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

// endWithParent ends this process when its parent does.
func endWithParent() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
}

// workUntilKilled is the process that works.
func workUntilKilled() {
	endWithParent()
	for {
		q, err := jetstream.Open(context.Background(), os.Getenv(workOn), faultOptions())
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

// serveUntilKilled is the process of a server.
func serveUntilKilled() {
	endWithParent()
	port, err := strconv.Atoi(os.Getenv(servePort))
	if err == nil {
		_, err = startServer(os.Getenv(serveIn), port)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// The environment of a server until it is killed.
const (
	serveIn   = "PAWL_TEST_SERVE_IN"
	servePort = "PAWL_TEST_SERVE_PORT"
)

// child starts a process of this binary, and returns how to kill it.
func child(t *testing.T, env ...string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env...)
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

// Rule: over a server that syncs before it answers, no job is lost whose Enqueue returned nil, although workers are killed,
// and the server is killed and restarted, which also breaks all connections.
func TestNothingIsLost(t *testing.T) {
	port, folder, path := freePort(t), t.TempDir(), filepath.Join(t.TempDir(), "done")
	where := fmt.Sprintf("nats://127.0.0.1:%d", port)
	server := func() func() { return child(t, serveIn+"="+folder, servePort+"="+strconv.Itoa(port)) }
	working := func() func() { return child(t, workOn+"="+where, doneIn+"="+path) }
	kills := []func(){server(), working(), working()}
	defer func() {
		for _, kill := range kills {
			kill()
		}
	}()
	var q *jetstream.Queue
	require.Eventually(t, func() (ok bool) {
		var err error
		q, err = jetstream.Open(t.Context(), where, faultOptions())
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	defer q.Close()

	jobs := faultJobs(t)
	var next, accepted, unknown, away atomic.Int64
	var producers sync.WaitGroup
	acknowledged := make([]atomic.Bool, jobs)
	tick := make(chan struct{}, jobs)
	for range 16 {
		producers.Go(func() {
			for n := int(next.Add(1)) - 1; n < jobs; n = int(next.Add(1)) - 1 {
				for {
					_, err := number.Enqueue(t.Context(), q, n)
					if errors.Is(err, jetstream.ErrUnavailable) { // nothing is stored
						away.Add(1)
						time.Sleep(time.Millisecond)
						continue
					}
					if errors.Is(err, pawl.ErrUnknownOutcome) {
						unknown.Add(1)
					} else if err != nil {
						t.Errorf("enqueue: %v", err)
					} else {
						acknowledged[n].Store(true)
						accepted.Add(1)
					}
					break
				}
				tick <- struct{}{}
			}
		})
	}
	const faults = 8
	for n := range jobs {
		<-tick
		if n%(jobs/faults) != jobs/faults/2 {
			continue
		}
		if fault := n / (jobs / faults); fault%2 == 0 {
			kills[0]()
			kills[0] = server()
		} else {
			kills[1+fault/2%2]()
			kills[1+fault/2%2] = working()
		}
	}
	producers.Wait()

	w, err := newRecorder(q, path)
	require.NoError(t, err)
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	runs := make(map[int]int)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		require.NoError(t, err)
		runs[n]++
	}
	lost, again := 0, 0
	for n := range acknowledged {
		if acknowledged[n].Load() && runs[n] == 0 {
			lost++
		}
		again += max(0, runs[n]-1)
	}
	t.Logf("%d jobs acknowledged, %d with an unknown outcome, %d refused while the server was away; lost %d, run again %d",
		accepted.Load(), unknown.Load(), away.Load(), lost, again)
	require.Zero(t, lost)
	require.Greater(t, accepted.Load(), int64(jobs/2))
}
