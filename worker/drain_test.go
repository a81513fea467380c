package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// A drain with WaitDrained ends when nothing is ready or leased; a retry that
// waits for its time stays. WaitFinished waits for such a retry too.
func TestDrain(t *testing.T) {
	for _, c := range []struct {
		rule  string
		until pawl.Wait
		took  time.Duration
		left  pawl.Counts
	}{
		{"drained leaves the retries", pawl.WaitDrained, 3 * time.Second, pawl.Counts{Delayed: 2}},
		{"finished waits for them", pawl.WaitFinished, time.Hour + time.Second, pawl.Counts{}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				w := newWorker(q, worker.Options{Concurrency: 1})
				worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
					<-time.After(time.Second)
					if job.Args == "fails" && job.Attempt == 1 {
						return errBroken
					}
					return nil
				})
				enqueue(t, q, "works")
				enqueue(t, q, "fails")
				enqueue(t, q, "works")
				enqueue(t, q, "later", pawl.Delay(time.Hour))
				began := time.Now()
				require.NoError(t, w.Drain(t.Context(), c.until))
				require.Equal(t, c.took, time.Since(began))
				require.Equal(t, c.left, counts(t, q))
			})
		})
	}
}

// Draining a queue that holds nothing, or nothing that this worker could wait for,
// returns immediately.
func TestDrainOfNothing(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return nil })
		began := time.Now()
		require.NoError(t, w.Drain(t.Context(), pawl.WaitDrained), "a queue that never was")
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		enqueue(t, q, "elsewhere", pawl.OnQueue("other"))
		unknown := pawl.Define[string]("unknown")
		_, err := unknown.Enqueue(t.Context(), q, "a")
		require.NoError(t, err)
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Zero(t, time.Since(began))
		require.Equal(t, pawl.Counts{Ready: 1}, counts(t, q))
	})
}

// A drain waits for a job that another worker has leased, and runs the job if the
// other worker gives it back.
func TestDrainWaitsForOthers(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a")
		leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
		require.NoError(t, err)
		time.AfterFunc(20*time.Second, func() { _ = q.Settle(context.Background(), leases[0].Release()) })
		r := handleAll(t, q, worker.Options{}, func(*pawl.Job[string]) error { return nil })
		require.Equal(t, []time.Duration{20 * time.Second}, r.at)
		requireDone(t, q, id)
	})
}

// A drain whose context ends stops in the steps of a stop, and returns the
// context's error.
func TestDrainStops(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		id := enqueue(t, q, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, w.Drain(ctx, pawl.WaitDrained), context.DeadlineExceeded)
		require.Equal(t, 64*time.Second, time.Since(began))
		requireReleased(t, q, id)
	})
}

// Drain has two ways to wait; the others would never end or never begin.
func TestDrainNeedsAnEnd(t *testing.T) {
	for _, until := range []pawl.Wait{pawl.WaitForJob, pawl.WaitNot, 99} {
		w := newWorker(untouchable{}, worker.Options{})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return nil })
		require.ErrorIs(t, w.Drain(t.Context(), until), pawl.ErrInvalid)
	}
}

// ProcessOnce runs only the first job, and has settled it when it returns. It does
// not return the job's error.
func TestProcessOnce(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		var handled []string
		w := newWorker(q, worker.Options{Concurrency: 8})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			<-time.After(time.Minute)
			handled = append(handled, job.Args)
			if job.Args == "fails" {
				return errBroken
			}
			return nil
		})
		require.ErrorIs(t, w.ProcessOnce(t.Context()), pawl.ErrEmpty)
		enqueue(t, q, "later", pawl.Delay(time.Second))
		require.ErrorIs(t, w.ProcessOnce(t.Context()), pawl.ErrEmpty, "a delayed job is not ready")

		first := enqueue(t, q, "a", pawl.Priority(1))
		second := enqueue(t, q, "fails", pawl.MaxRetries(0))
		require.NoError(t, w.ProcessOnce(t.Context()))
		require.Equal(t, []string{"a"}, handled)
		requireDone(t, q, first)
		require.Equal(t, pawl.Ready, stored(t, q, second).State)

		require.NoError(t, w.ProcessOnce(t.Context()), "the later job, ready meanwhile, is behind")
		requireDead(t, q, second, pawl.ReasonExhausted, 1)
		require.NoError(t, w.ProcessOnce(t.Context()))
		require.Equal(t, []string{"a", "fails", "later"}, handled)
		require.ErrorIs(t, w.ProcessOnce(t.Context()), pawl.ErrEmpty)
	})
}

// ProcessOnce stops like a worker when its context ends.
func TestProcessOnceStops(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{})
		worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		id := enqueue(t, q, "a")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.ProcessOnce(ctx) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		requireReleased(t, q, id)
	})
}
