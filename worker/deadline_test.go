package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// The context of an attempt ends at the earlier of its timeout and its job's deadline,
// with a cause that says which.
func TestDeadlineOrTimeout(t *testing.T) {
	for _, c := range []struct {
		rule              string
		timeout, deadline time.Duration // from the start of the attempt
		after             time.Duration
		cause             error
		timedOut          bool
	}{
		{"a deadline without a timeout", 0, time.Minute, time.Minute, worker.ErrDeadline, false},
		{"a deadline before the timeout", time.Hour, time.Minute, time.Minute, worker.ErrDeadline, false},
		{"a timeout before the deadline", time.Minute, time.Hour, time.Minute, worker.ErrTimeout, true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
				began := time.Now()
				id := enqueue(t, q, "a", pawl.Timeout(c.timeout), pawl.Deadline(began.Add(c.deadline)), pawl.MaxRetries(1))
				w := newWorker(q, worker.Options{})
				worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error {
					waitFor(ctx)
					assert.Equal(t, c.after, time.Since(began))
					assert.Equal(t, c.cause, context.Cause(ctx))
					assert.Equal(t, context.DeadlineExceeded, ctx.Err())
					return ctx.Err()
				})
				require.NoError(t, w.ProcessOnce(t.Context()))
				failed := stored(t, q, id)
				require.Equal(t, 1, failed.Attempts)
				require.Contains(t, failed.History[0].Error, c.cause.Error())
				run := emitted.of(pawl.EventRetried)
				require.Len(t, run, 1, "it is a failed attempt like any other")
				require.Equal(t, c.timedOut, run[0].TimedOut)
				if !c.timedOut {
					requireDead(t, q, id, pawl.ReasonDeadline, 1)
				}
			})
		})
	}
}

// What the handler returns at the deadline decides as usual: the work may be done.
func TestSuccessAfterDeadline(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		id := enqueue(t, q, "a", pawl.Deadline(time.Now().Add(time.Minute)))
		handleAll(t, q, worker.Options{}, func(*pawl.Job[string]) error {
			<-time.After(80 * time.Second)
			return nil
		})
		requireDone(t, q, id)
		require.Len(t, emitted.of(pawl.EventSucceeded), 1)
	})
}

// A handler that ignores the deadline is given up StuckGrace later. This does not count
// as a timeout.
func TestStuckAtDeadline(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		stuck, _ := gate(t)
		var log logbook
		w := newWorker(q, worker.Options{StuckGrace: 20 * time.Second, Logger: log.logger()})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { <-stuck; return nil })
		id := enqueue(t, q, "a", pawl.Deadline(time.Now().Add(time.Minute)), pawl.Timeout(time.Hour))
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		require.NoError(t, w.ProcessOnce(ctx))
		require.Equal(t, 80*time.Second, time.Since(began))
		require.Equal(t, 1, w.Stuck())
		requireDead(t, q, id, pawl.ReasonDeadline, 1)
		require.Contains(t, stored(t, q, id).History[0].Error, worker.ErrDeadline.Error())
		require.Contains(t, log.String(), "handler ignores the end of its context")
		require.False(t, emitted.of(pawl.EventRetried)[0].TimedOut)
	})
}

// A job whose deadline passes while it waits in the worker does not run: it goes back,
// and is dead then.
func TestDeadlineWhileItWaits(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		var handled []string
		w := newWorker(fetchTwo(q), worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			handled = append(handled, job.Args)
			<-time.After(50 * time.Millisecond) // less than the time after which waiting jobs go back
			return nil
		})
		enqueue(t, q, "first")
		id := enqueue(t, q, "second", pawl.Deadline(time.Now().Add(50*time.Millisecond)))
		stop := start(t, w)
		synctest.Wait()
		require.Equal(t, pawl.Leased, stored(t, q, id).State)
		<-time.After(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, []string{"first"}, handled)
		requireDead(t, q, id, pawl.ReasonDeadline, 0)
		require.Len(t, emitted.of(pawl.EventSnoozed), 1)
	})
}
