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

// requireCancelled fails unless the job is dead as cancelled, after so many attempts.
func requireCancelled(t *testing.T, q finder, id pawl.ID, attempts int) {
	t.Helper()
	requireDead(t, q, id, pawl.ReasonCancelled, attempts)
}

// When a job is cancelled, the context of its handler ends immediately, with
// ErrCancelled. A success still counts; otherwise the job is dead, and a failure
// is in its history with the cause.
func TestCancelEndsRun(t *testing.T) {
	failed := func(t *testing.T, q finder, id pawl.ID) {
		requireCancelled(t, q, id, 1)
		require.Contains(t, stored(t, q, id).History[0].Error, worker.ErrCancelled.Error())
	}
	for _, c := range []struct {
		rule    string
		returns func(ctx context.Context) error
		check   func(t *testing.T, q finder, id pawl.ID)
	}{
		{"nil is acked", func(context.Context) error { return nil }, requireDone},
		{"the context's error fails", context.Context.Err, failed},
		{"its cause fails", context.Cause, failed},
		{"any error fails", func(context.Context) error { return errBroken }, failed},
		{"a panic fails", func(context.Context) error { return explode("late") }, failed},
		{"permanent fails", func(context.Context) error { return pawl.Permanent(errBroken) }, failed},
		{"a snooze does not bring it back", func(context.Context) error { return pawl.Snooze(time.Hour) },
			func(t *testing.T, q finder, id pawl.ID) { requireCancelled(t, q, id, 0) }},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
				var log logbook
				w := newWorker(q, worker.Options{Timeout: time.Hour, Logger: log.logger()})
				began := time.Now()
				worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error {
					waitFor(ctx)
					assert.Equal(t, time.Minute, time.Since(began))
					assert.Equal(t, worker.ErrCancelled, context.Cause(ctx))
					return c.returns(ctx)
				})
				id := enqueue(t, q, "a")
				time.AfterFunc(time.Minute, func() { assert.NoError(t, q.Cancel(context.Background(), id)) })
				require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
				c.check(t, q, id)
				require.NotContains(t, log.String(), "retry_in", "no retry comes")
				require.Len(t, emitted.of(pawl.EventFetched), 1)
			})
		})
	}
}

// The attempt of one job is cancelled, and not that of another.
func TestCancelEndsOneRun(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		w := newWorker(q, worker.Options{Concurrency: 2})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return ctx.Err()
		})
		cancelled, works := enqueue(t, q, "a"), enqueue(t, q, "b")
		stop := start(t, w)
		synctest.Wait()
		require.NoError(t, q.Cancel(t.Context(), cancelled))
		<-time.After(2 * time.Minute)
		require.NoError(t, stop())
		requireCancelled(t, q, cancelled, 1)
		requireDone(t, q, works)
	})
}

// fetchTwo is a queue that returns two jobs when one was asked for, so that one waits
// in a worker with one slot.
func fetchTwo(q pawl.Queue) *faulty {
	return &faulty{Queue: q, fetch: func(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
		r.Max = 2
		return q.Fetch(ctx, r)
	}}
}

// A job that is cancelled while it waits in the worker does not run: it goes back, and
// is dead then.
func TestCancelledWhileItWaits(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		var handled []string
		w := newWorker(fetchTwo(q), worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			handled = append(handled, job.Args)
			<-time.After(50 * time.Millisecond) // less than the time after which waiting jobs go back
			return nil
		})
		enqueue(t, q, "first")
		id := enqueue(t, q, "second")
		stop := start(t, w)
		synctest.Wait()
		require.Equal(t, pawl.Leased, stored(t, q, id).State)
		require.NoError(t, q.Cancel(t.Context(), id))
		<-time.After(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, []string{"first"}, handled)
		requireCancelled(t, q, id, 0)
		require.Empty(t, emitted.of(pawl.EventReleased), "its death is all that there is to tell")
	})
}

// An attempt that was cancelled and fails while the worker stops has failed. Its job is not
// released as if the stop had interrupted it, whichever came first.
func TestCancelAndStop(t *testing.T) {
	for _, c := range []struct {
		rule     string
		cancelAt time.Duration // the worker begins to stop at 10s and ends contexts at 14s
		cause    error
	}{
		{"cancelled before the stop", 5 * time.Second, worker.ErrCancelled},
		{"cancelled while the stop waits", 12 * time.Second, worker.ErrCancelled},
		{"cancelled after the stop ended its context", 15 * time.Second, worker.ErrStopping},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
				w := newWorker(q, worker.Options{})
				worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error {
					<-time.After(16 * time.Second)
					assert.Equal(t, c.cause, context.Cause(ctx))
					return ctx.Err()
				})
				id := enqueue(t, q, "a")
				stop := start(t, w)
				time.AfterFunc(c.cancelAt, func() { assert.NoError(t, q.Cancel(context.Background(), id)) })
				<-time.After(10 * time.Second)
				require.NoError(t, stop())
				requireCancelled(t, q, id, 1)
			})
		})
	}
}
