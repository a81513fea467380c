package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// The queue learns how long an attempt took, from the start of its handler, and whether its
// timeout made it fail.
func TestQueueReceivesTheRun(t *testing.T) {
	for _, c := range []struct {
		rule     string
		handler  func(ctx context.Context) error
		event    pawl.EventType
		took     time.Duration
		timedOut bool
	}{
		{"a success", func(context.Context) error { <-time.After(3 * time.Second); return nil },
			pawl.EventSucceeded, 3 * time.Second, false},
		{"a failure", func(context.Context) error { <-time.After(3 * time.Second); return errBroken },
			pawl.EventRetried, 3 * time.Second, false},
		{"a failure at the timeout", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			pawl.EventRetried, 10 * time.Second, true},
		{"the last at the timeout", func(ctx context.Context) error { <-ctx.Done(); return pawl.Permanent(ctx.Err()) },
			pawl.EventDied, 10 * time.Second, true},
		{"a success after the timeout is no failure", func(ctx context.Context) error { <-time.After(15 * time.Second); return nil },
			pawl.EventSucceeded, 15 * time.Second, false},
		{"a handler that ignores its timeout", func(context.Context) error { <-time.After(time.Hour); return nil },
			pawl.EventRetried, 40 * time.Second, true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
				w := newWorker(q, worker.Options{Timeout: 10 * time.Second})
				worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error { return c.handler(ctx) })
				enqueue(t, q, "a")
				<-time.After(time.Minute) // it waits, which is no part of the attempt
				require.NoError(t, w.ProcessOnce(t.Context()))
				run := emitted.of(c.event)
				require.Len(t, run, 1)
				require.Equal(t, c.took, run[0].Took)
				require.Equal(t, c.timedOut, run[0].TimedOut)
				<-time.After(2 * time.Hour) // the handler that hangs returns
			})
		})
	}
}

// A lease knows when its attempt started as soon as the handler runs, and a job that goes
// back without one has no start.
func TestLeaseKnowsStart(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		released := make(map[pawl.ID]time.Time)
		two := fetchTwo(q)
		two.release = func(ctx context.Context, l *pawl.Lease) error {
			released[l.ID] = l.Started
			return q.Settle(ctx, l.Release())
		}
		w := newWorker(two, worker.Options{Concurrency: 1})
		began := time.Now()
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			assert.Equal(t, began, job.Lease.Started)
			<-time.After(time.Second)
			return nil
		})
		enqueue(t, q, "first")
		waits := enqueue(t, q, "second")
		stop := start(t, w)
		<-time.After(500 * time.Millisecond)
		require.NoError(t, stop())
		require.Equal(t, map[pawl.ID]time.Time{waits: {}}, released)
	})
}

// The lease that a stuck handler holds is not written to: the handler may be reading it,
// as an AckTx does. The race detector watches.
func TestStuckHandlerReadsItsLease(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		stuck, letGo := gate(t)
		w := newWorker(q, worker.Options{StuckGrace: time.Second})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			<-stuck
			assert.False(t, job.Lease.TimedOut)
			return nil
		})
		enqueue(t, q, "a", pawl.Timeout(time.Second))
		require.NoError(t, w.ProcessOnce(t.Context()))
		require.True(t, emitted.of(pawl.EventRetried)[0].TimedOut)
		letGo()
	})
}
