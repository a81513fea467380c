// Package faults tests that an engine on a server loses no job that it acknowledged, while workers
// and servers are killed and connections are cut.
package faults

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
	"github.com/gopawl/pawl/worker"
)

// The environment of a process that works until it is killed.
const (
	workOn = "PAWL_TEST_WORK_ON" // the place of the queue
	doneIn = "PAWL_TEST_DONE_IN" // the file that gets a line for each run
)

// number is the kind of the jobs.
var number = pawl.Define[int]("number", pawl.Backoff(pawl.Fixed(time.Second)))

// Queue is a queue on a server.
type Queue interface {
	pawl.Queue
	Stats(ctx context.Context) (pawl.Stats, error)
	Close() error
}

// Engine is an engine whose queues are on a server.
type Engine struct {
	// Open opens the queue at a place, with short leases and without a limit on crashes.
	Open func(ctx context.Context, place string) (Queue, error)

	// Unavailable is the error of a call that stored nothing because the server was away.
	Unavailable error
}

// WorkUntilKilled works on a queue if this process is a child of [Engine.Run], and else returns. Call it
// at the beginning of TestMain.
func (e Engine) WorkUntilKilled() {
	place := os.Getenv(workOn)
	if place == "" {
		return
	}
	go func() { // it ends with its parent
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		q, err := e.Open(context.Background(), place)
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

// child starts a process that works, and returns how to kill it.
func child(t testing.TB, place, path string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workOn+"="+place, doneIn+"="+path)
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

// Jobs is how many jobs a test enqueues: 2 000, or PAWL_FAULT_JOBS.
func Jobs(t testing.TB) int {
	text := os.Getenv("PAWL_FAULT_JOBS")
	if text == "" {
		return 2000
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// Faults are what a test does to connections and to the server.
type Faults struct {
	Cut     func() // ends all connections
	Restart func() // kills the server, and starts it on the same data
}

// faultsOfRun is how many faults a run has: a third each of killed workers, cut connections, and killed
// servers.
const faultsOfRun = 12

// Run enqueues jobs from 16 goroutines at a place, beside two processes that work on them, amid faults.
// Then it drains the queue and requires that each acknowledged job ran, and that nothing is left. It
// returns how many jobs were acknowledged, and how many calls were refused while the server was away.
func (e Engine) Run(t *testing.T, place string, faults Faults) (acknowledged, refused int) {
	path := filepath.Join(t.TempDir(), "done")
	kills := []func(){child(t, place, path), child(t, place, path)}
	defer func() {
		for _, kill := range kills {
			kill()
		}
	}()
	q, err := e.Open(t.Context(), place)
	require.NoError(t, err)
	jobs := Jobs(t)
	sent, unknown, refused := e.produce(t, q, jobs, func(n int) {
		if n%(jobs/faultsOfRun) != jobs/faultsOfRun/2 {
			return
		}
		switch fault := n / (jobs / faultsOfRun); fault % 3 {
		case 0:
			kills[fault%2]()
			kills[fault%2] = child(t, place, path)
		case 1:
			faults.Cut()
		case 2:
			faults.Restart()
		}
	})
	w, err := newRecorder(q, path)
	require.NoError(t, err)
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	for _, row := range stats.Queues {
		require.Zero(t, row.Counts)
	}
	require.NoError(t, q.Close())

	runs := recorded(t, path)
	lost, again := 0, 0
	for n := range sent {
		if sent[n].Load() {
			acknowledged++
			if runs[n] == 0 {
				lost++
			}
		}
		again += max(0, runs[n]-1)
	}
	t.Logf("%d jobs acknowledged, %d with an unknown outcome, %d calls refused while the server was away; lost %d, run again %d",
		acknowledged, unknown, refused, lost, again)
	require.Zero(t, lost)
	return acknowledged, refused
}

// produce enqueues jobs and calls each after each job. It returns which jobs were acknowledged, how many have an
// unknown outcome, and how many calls the engine refused while the server was away.
func (e Engine) produce(t *testing.T, q pawl.Queue, jobs int, each func(n int)) (acknowledged []atomic.Bool, unknown, refused int) {
	var next, doubtful, away atomic.Int64
	var producers sync.WaitGroup
	acknowledged = make([]atomic.Bool, jobs)
	tick := make(chan struct{}, jobs)
	store := func(n int) {
		for {
			_, err := number.Enqueue(t.Context(), q, n)
			switch {
			case errors.Is(err, e.Unavailable): // nothing is stored
				away.Add(1)
				time.Sleep(time.Millisecond)
				continue
			case err == nil:
				acknowledged[n].Store(true)
			case errors.Is(err, pawl.ErrUnknownOutcome):
				doubtful.Add(1)
			default:
				t.Errorf("enqueue: %v", err)
			}
			return
		}
	}
	for range 16 {
		producers.Go(func() {
			for n := int(next.Add(1)) - 1; n < jobs; n = int(next.Add(1)) - 1 {
				store(n)
				tick <- struct{}{}
			}
		})
	}
	for n := range jobs {
		<-tick
		each(n)
	}
	producers.Wait()
	return acknowledged, int(doubtful.Load()), int(away.Load())
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
