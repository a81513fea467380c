package worker_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/worker"
)

// task is the kind of most jobs here. It has no options: those of the worker apply.
var task = pawl.Define[string]("task")

// plain is the policy of most workers here: no jitter, so that times are exact.
var plain = pawl.Exponential(5*time.Second, 2)

var errBroken = errors.New("broken")

// bubble runs a test in virtual time over a real queue. It fails when a goroutine
// of the worker is left at the end.
func bubble(t *testing.T, test func(t *testing.T, q *bolt.Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q, _ := open(t)
		test(t, q)
	})
}

// open makes a queue, which is closed and whose file is checked when the test ends.
func open(t *testing.T) (*bolt.Queue, string) {
	t.Helper()
	path := filepath.Join(memdir.New(t), "jobs.db")
	return reopen(t, path), path
}

func reopen(t *testing.T, path string) *bolt.Queue {
	t.Helper()
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease()})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, q.Close())
		checkFile(t, path)
	})
	return q
}

// checkFile checks that the pages of a file are in order, that every job is in one
// state, and that the counts agree with the rows.
func checkFile(t *testing.T, path string) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("the file is damaged: %v", err)
		}
		return nil
	}))
	require.NoError(t, db.Close())

	r, err := bolt.OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	var rows pawl.Counts
	for job, err := range r.Jobs(context.Background(), pawl.Filter{}) {
		require.NoError(t, err)
		*driver.CountOf(&rows, job.State)++
	}
	stats, err := r.Stats(context.Background())
	require.NoError(t, err)
	var sum pawl.Counts
	for _, queue := range stats.Queues {
		driver.AddCounts(&sum, queue.Counts)
	}
	require.Equal(t, rows, sum, "the counts of the file and its rows differ")
}

// newWorker makes a worker with the plain policy, unless opts has another, and a
// silent log.
func newWorker(q pawl.Queue, opts worker.Options) *worker.Worker {
	if opts.Policy == nil {
		opts.Policy = plain
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	return worker.New(q, &opts)
}

// start runs w until the returned function is called, or the test ends. That function
// returns the result of Run.
func start(t *testing.T, w *worker.Worker) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var err error
	go func() { err = w.Run(ctx); close(done) }()
	stop = func() error {
		cancel()
		<-done
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// logbook is a log to read while it is written.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// logger writes what has gone wrong, from warnings on.
func (l *logbook) logger() hclog.Logger { return l.from(hclog.Warn) }

func (l *logbook) from(level hclog.Level) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: l, Level: level, DisableTime: true})
}

// gate is a channel to wait for, and what closes it: the end of the test at the
// latest, so that a test that fails leaves no goroutine waiting.
func gate(t *testing.T) (closed <-chan struct{}, open func()) {
	c := make(chan struct{})
	open = sync.OnceFunc(func() { close(c) })
	t.Cleanup(open)
	return c, open
}

// waitFor waits for the end of a context, and no longer than a day: a test in which it
// does not end fails then. Otherwise it would run for ever in virtual time.
func waitFor(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(24 * time.Hour):
	}
}

// enqueue stores a job of kind task.
func enqueue(t *testing.T, q pawl.Enqueuer, args string, opts ...pawl.Option) pawl.ID {
	t.Helper()
	job, err := task.Enqueue(context.Background(), q, args, opts...)
	require.NoError(t, err)
	return job.ID
}

// finder is a queue of any sort that can be asked for a job.
type finder interface {
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)
}

// stored reads a job that must be there.
func stored(t *testing.T, q finder, id pawl.ID) *pawl.Envelope {
	t.Helper()
	e, err := q.Job(context.Background(), id)
	require.NoError(t, err)
	return e
}

// requireDone fails unless the job was acknowledged.
func requireDone(t *testing.T, q finder, id pawl.ID) {
	t.Helper()
	_, err := q.Job(context.Background(), id)
	require.ErrorIs(t, err, pawl.ErrNotFound)
}

// requireDead fails unless the job is dead for this reason, after so many
// attempts.
func requireDead(t *testing.T, q finder, id pawl.ID, reason pawl.Reason, attempts int) {
	t.Helper()
	e := stored(t, q, id)
	require.Equal(t, pawl.Dead, e.State)
	require.Equal(t, reason, e.Death.Reason)
	require.Equal(t, attempts, e.Attempts)
}

// requireReleased fails unless the job is ready as if it had never run.
func requireReleased(t *testing.T, q finder, id pawl.ID) {
	t.Helper()
	e := stored(t, q, id)
	require.Equal(t, pawl.Ready, e.State)
	require.Zero(t, e.Attempts)
	require.Zero(t, e.Crashes)
	require.Empty(t, e.History)
}

// counts are those of the default queue.
func counts(t *testing.T, q *bolt.Queue) pawl.Counts {
	t.Helper()
	stats, err := q.Stats(context.Background())
	require.NoError(t, err)
	for _, queue := range stats.Queues {
		if queue.Name == pawl.DefaultQueue {
			return queue.Counts
		}
	}
	return pawl.Counts{}
}
