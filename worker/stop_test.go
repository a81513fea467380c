package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// A stop lets a running handler finish in peace, and fetches nothing in the
// meantime.
func TestStopWaitsForHandler(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{Concurrency: 1})
		var interrupted error
		worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error {
			<-time.After(3 * time.Second)
			interrupted = ctx.Err()
			return nil
		})
		id := enqueue(t, q, "a")
		stop := start(t, w)
		synctest.Wait()
		enqueue(t, q, "later")
		began := time.Now()
		require.NoError(t, stop())
		require.Equal(t, 3*time.Second, time.Since(began), "Run returns as soon as nothing runs")
		require.NoError(t, interrupted)
		requireDone(t, q, id)
		require.Equal(t, pawl.Counts{Ready: 1}, counts(t, q))
	})
}

// Beyond Drain the handler's context ends with ErrStopping. An error after that is
// no failure; nil, a permanent error, and a snooze have their usual effect.
func TestStopInterruptsHandler(t *testing.T) {
	for _, c := range []struct {
		rule    string
		returns func(ctx context.Context) error
		check   func(t *testing.T, q finder, id pawl.ID)
	}{
		{"the context's error releases", context.Context.Err, requireReleased},
		{"its cause releases", context.Cause, requireReleased},
		{"any error releases", func(context.Context) error { return errBroken }, requireReleased},
		{"a panic releases", func(context.Context) error { panic("interrupted") }, requireReleased},
		{"nil acks", func(context.Context) error { return nil }, requireDone},
		{"permanent is permanent", func(context.Context) error { return pawl.Permanent(errBroken) },
			func(t *testing.T, q finder, id pawl.ID) { requireDead(t, q, id, pawl.ReasonPermanent, 1) }},
		{"snooze snoozes", func(context.Context) error { return pawl.Snooze(time.Hour) },
			func(t *testing.T, q finder, id pawl.ID) { require.Equal(t, pawl.Delayed, stored(t, q, id).State) }},
	} {
		t.Run(c.rule, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				w := newWorker(q, worker.Options{Drain: 20 * time.Second, Timeout: time.Hour})
				worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error {
					<-ctx.Done()
					assert.Equal(t, worker.ErrStopping, context.Cause(ctx))
					<-time.After(time.Second)
					return c.returns(ctx)
				})
				id := enqueue(t, q, "a", pawl.MaxRetries(0))
				stop := start(t, w)
				synctest.Wait()
				began := time.Now()
				require.NoError(t, stop())
				require.Equal(t, 21*time.Second, time.Since(began))
				c.check(t, q, id)
			})
		})
	}
}

// A handler that never returns delays nothing else: StopGrace later its job is
// released and Run returns. What it returns in the end settles nothing.
func TestStopLeavesStuckHandler(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		stuck, letGo := gate(t)
		w := newWorker(q, worker.Options{})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { <-stuck; return nil })
		id := enqueue(t, q, "a")
		stop := start(t, w)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, stop())
		require.Equal(t, 7*time.Second, time.Since(began), "4 s of Drain and 3 s of StopGrace are the defaults")
		requireReleased(t, q, id)
		letGo()
		synctest.Wait()
		requireReleased(t, q, id)
	})
}

// A handler that returns at the moment of a step of the stop is settled once: its
// job is done, or ready.
func TestHandlerReturnsAtStepOfStop(t *testing.T) {
	for _, took := range []time.Duration{4 * time.Second, 7 * time.Second} {
		t.Run(took.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				const jobs = 50
				var log logbook
				w := newWorker(q, worker.Options{Concurrency: jobs, Logger: log.logger()})
				worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error {
					<-time.After(took)
					return nil
				})
				for range jobs {
					enqueue(t, q, "a")
				}
				stop := start(t, w)
				synctest.Wait()
				require.NoError(t, stop())
				givenUp := strings.Count(log.String(), "its job is released")
				require.Equal(t, pawl.Counts{Ready: givenUp}, counts(t, q))
				require.NotContains(t, log.String(), "settle")
			})
		})
	}
}

// What was fetched ahead goes back immediately when the worker stops, even if
// handlers still run.
func TestStopReleasesWaitingJobs(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		var order []string
		w := newWorker(slowAcks(q), worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			order = append(order, job.Args)
			if job.Args == "long" {
				<-time.After(5 * time.Second)
			}
			return nil
		})
		enqueue(t, q, "short")
		enqueue(t, q, "long")
		waiting := []pawl.ID{enqueue(t, q, "a"), enqueue(t, q, "b"), enqueue(t, q, "c")}
		stop := start(t, w)
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Equal(t, pawl.Counts{Leased: 4}, counts(t, q))

		go stop()
		synctest.Wait()
		require.Equal(t, pawl.Counts{Leased: 1, Ready: 3}, counts(t, q))
		require.NoError(t, stop())
		require.Equal(t, []string{"short", "long"}, order)
		for _, id := range waiting {
			requireReleased(t, q, id)
		}
		require.Equal(t, pawl.Counts{Ready: 3}, counts(t, q))
	})
}

// Jobs that arrive while the worker begins to stop go back, too.
func TestStopStartsNothing(t *testing.T) {
	for _, work := range []struct {
		name string
		call func(*worker.Worker, context.Context) error
		want error
	}{
		{"Run", (*worker.Worker).Run, nil},
		{"Drain", func(w *worker.Worker, ctx context.Context) error { return w.Drain(ctx, pawl.WaitFinished) }, context.Canceled},
		{"ProcessOnce", (*worker.Worker).ProcessOnce, context.Canceled},
	} {
		t.Run(work.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				ctx, cancel := context.WithCancel(t.Context())
				late := &faulty{Queue: q, fetch: func(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
					leases, err := q.Fetch(ctx, r)
					cancel()
					return leases, err
				}}
				w := newWorker(late, worker.Options{})
				worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error {
					t.Error("a handler started after the stop")
					return nil
				})
				id := enqueue(t, q, "a")
				began := time.Now()
				require.ErrorIs(t, work.call(w, ctx), work.want)
				require.Zero(t, time.Since(began))
				requireReleased(t, q, id)
			})
		})
	}
}

// A worker that is stopped before it starts returns immediately, for whatever
// reason its context ended.
func TestStopBeforeStart(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a")
		w := newWorker(q, worker.Options{})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return nil })
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("terminated"))
		require.NoError(t, w.Run(ctx))
		require.ErrorIs(t, w.Drain(ctx, pawl.WaitDrained), context.Canceled)
		require.ErrorIs(t, w.ProcessOnce(ctx), context.Canceled)
		requireReleased(t, q, id)

		late, cancel2 := context.WithDeadline(t.Context(), time.Now())
		defer cancel2()
		require.NoError(t, w.Run(late))
	})
}

// Run may be called again, and continues where the last call stopped.
func TestRunAgain(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return nil })
		for range 3 {
			id := enqueue(t, q, "a")
			stop := start(t, w)
			synctest.Wait()
			require.NoError(t, stop())
			requireDone(t, q, id)
		}
	})
}
