package worker_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

type size struct{ Width, Height int }

// resize is a task whose handler answers with what its arguments say.
var resize = pawl.DefineTask[string, size]("resize", pawl.MaxRetries(0))

// Rule: a task returns what its handler returned, to calls that wait and to calls that come later.
func TestTask(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{})
		worker.HandleTask(w, resize, func(_ context.Context, job *pawl.Job[string]) (size, error) {
			return size{len(job.Args), job.Attempt}, nil
		})
		defer start(t, w)()
		got, err := resize.Do(t.Context(), q, "photo")
		require.NoError(t, err)
		require.Equal(t, size{5, 1}, got)

		done, err := resize.Enqueue(t.Context(), q, "thumb")
		require.NoError(t, err)
		for range 2 {
			got, err = resize.Wait(t.Context(), q, done.ID)
			require.NoError(t, err)
			require.Equal(t, size{5, 1}, got)
		}
		e, err := q.Job(t.Context(), done.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.DefaultTaskRetain, e.Retain)
		time.Sleep(pawl.DefaultTaskRetain + time.Minute) // virtual
		_, err = resize.Wait(t.Context(), q, done.ID)
		require.ErrorIs(t, err, pawl.ErrNotFound)
	})
}

// Rule: with Retain(0) a result reaches the calls that wait, and nothing of the job stays.
func TestTaskWithoutRetention(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{})
		worker.HandleTask(w, resize, func(context.Context, *pawl.Job[string]) (size, error) {
			time.Sleep(time.Second) // virtual
			return size{1, 2}, nil
		})
		defer start(t, w)()
		_, err := resize.Do(t.Context(), q, "photo", pawl.Retain(0))
		require.ErrorIs(t, err, pawl.ErrInvalid, "the job could end before the wait begins")
		done, err := resize.Enqueue(t.Context(), q, "photo", pawl.Retain(0))
		require.NoError(t, err)
		got, err := resize.Wait(t.Context(), q, done.ID)
		require.NoError(t, err)
		require.Equal(t, size{1, 2}, got)
		for _, err := range q.Jobs(t.Context(), pawl.Filter{}) {
			require.NoError(t, err)
			t.Fatal("a job is left")
		}
	})
}

// Rule: a task reads only the results of its own kind, and of its former names.
func TestTaskOfAnotherKind(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{})
		worker.HandleTask(w, resize, func(context.Context, *pawl.Job[string]) (size, error) { return size{3, 4}, nil })
		defer start(t, w)()
		done, err := resize.Enqueue(t.Context(), q, "photo")
		require.NoError(t, err)
		renamed := pawl.DefineTask[string, size]("scale", pawl.Alias("resize"))
		got, err := renamed.Wait(t.Context(), q, done.ID)
		require.NoError(t, err)
		require.Equal(t, size{3, 4}, got)
		_, err = pawl.DefineTask[string, size]("crop").Wait(t.Context(), q, done.ID)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, `"resize" is not "crop"`)
	})
}

// Rule: the error of a task that failed for good has its reason and its text.
func TestTaskThatFailsForGood(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{})
		worker.HandleTask(w, resize, func(context.Context, *pawl.Job[string]) (size, error) { return size{1, 1}, errBroken })
		defer start(t, w)()
		_, err := resize.Do(t.Context(), q, "photo")
		var dead *pawl.DeadError
		require.ErrorAs(t, err, &dead)
		require.Equal(t, pawl.ReasonExhausted, dead.Reason)
		require.Equal(t, "broken", dead.Text)
		require.EqualError(t, err, "job "+dead.ID.String()+` of kind "resize" is dead (exhausted): broken`)
	})
}

// Rule: a result that is too large, or that cannot be encoded, fails the job for good, whatever
// retries are left: another attempt would repeat the effect.
func TestTaskWhoseResultDoesNotFit(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		large := pawl.DefineTask[int, string]("large")
		strange := pawl.DefineTask[int, any]("strange")
		w := newWorker(q, worker.Options{})
		worker.HandleTask(w, large, func(_ context.Context, job *pawl.Job[int]) (string, error) {
			return strings.Repeat("x", job.Args), nil
		})
		worker.HandleTask(w, strange, func(context.Context, *pawl.Job[int]) (any, error) { return make(chan int), nil })
		defer start(t, w)()
		fits, err := large.Do(t.Context(), q, pawl.MaxResult-5)
		require.NoError(t, err)
		require.Len(t, fits, pawl.MaxResult-5)

		var dead *pawl.DeadError
		_, err = large.Do(t.Context(), q, pawl.MaxResult)
		require.ErrorAs(t, err, &dead)
		require.Equal(t, pawl.ReasonPermanent, dead.Reason)
		require.Contains(t, dead.Text, pawl.ErrResultTooLarge.Error())
		_, err = strange.Do(t.Context(), q, 1)
		require.ErrorAs(t, err, &dead)
		require.Equal(t, pawl.ReasonPermanent, dead.Reason)
		require.Contains(t, dead.Text, pawl.ErrPayloadEncoding.Error())
	})
}

// Rule: a handler that acks its job in a transaction of the app stores the result there.
func TestTaskAckedInATransaction(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{})
		worker.HandleTask(w, resize, func(ctx context.Context, job *pawl.Job[string]) (size, error) {
			out := size{7, 8}
			return size{}, q.Update(ctx, func(tx *bbolt.Tx) error {
				if job.Args == "with" {
					if err := resize.SetResult(job.Lease, out); err != nil {
						return err
					}
				}
				return q.AckTx(tx, job.Lease)
			})
		})
		defer start(t, w)()
		got, err := resize.Do(t.Context(), q, "with")
		require.NoError(t, err)
		require.Equal(t, size{7, 8}, got)
		_, err = resize.Do(t.Context(), q, "without")
		require.ErrorIs(t, err, pawl.ErrNoResult)
	})
}

// lacking is a queue without results.
type lacking struct{ *memory.Queue }

func (q lacking) Abilities() pawl.Ability { return q.Queue.Abilities() &^ pawl.Results }

// Rule: a queue without results is refused with an error that names the ability, at the start of
// the worker and at the first enqueue, and nothing is stored.
func TestTaskOnAQueueWithoutResults(t *testing.T) {
	q := lacking{memory.New(&memory.Options{Logger: hclog.NewNullLogger()})}
	defer q.Close()
	w := newWorker(q, worker.Options{})
	worker.HandleTask(w, resize, func(context.Context, *pawl.Job[string]) (size, error) { return size{}, nil })
	for _, err := range []error{w.Run(t.Context()), enqueueError(resize.Enqueue(t.Context(), q, "x"))} {
		require.ErrorIs(t, err, pawl.ErrUnsupported)
		require.ErrorContains(t, err, "it lacks results")
	}
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Empty(t, stats.Queues)
}

func enqueueError(_ pawl.Enqueued, err error) error { return err }

// Rule: a task whose result cannot be encoded is refused at the start of the worker, and at the
// first enqueue. A task without a handler does not start either.
func TestTaskThatCannotBe(t *testing.T) {
	q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
	defer q.Close()
	hidden := pawl.DefineTask[int, struct{ hidden int }]("hidden")
	w := newWorker(q, worker.Options{})
	worker.HandleTask(w, hidden, func(context.Context, *pawl.Job[int]) (struct{ hidden int }, error) {
		return struct{ hidden int }{1}, nil
	})
	require.ErrorContains(t, w.Run(t.Context()), "result of hidden")
	_, err := hidden.Enqueue(t.Context(), q, 1)
	require.ErrorIs(t, err, pawl.ErrInvalid)

	w = newWorker(q, worker.Options{})
	worker.HandleTask(w, resize, nil)
	require.ErrorIs(t, w.Run(t.Context()), pawl.ErrInvalid)
	require.ErrorIs(t, resize.SetResult(nil, size{}), pawl.ErrInvalid)
}

// Rule: of 10 000 calls that wait for tasks while workers run them, each gets the result of its
// job, and no goroutine is left.
func TestManyWaiters(t *testing.T) {
	const waiters, jobs = 10_000, 500
	q, _ := open(t)
	before := runtime.NumGoroutine()
	ids := make([]pawl.ID, jobs)
	for i := range ids {
		done, err := resize.Enqueue(t.Context(), q, strings.Repeat("x", i))
		require.NoError(t, err)
		ids[i] = done.ID
	}
	w := newWorker(q, worker.Options{Concurrency: 16})
	worker.HandleTask(w, resize, func(_ context.Context, job *pawl.Job[string]) (size, error) {
		return size{len(job.Args), 1}, nil
	})
	var all sync.WaitGroup
	errs := make(chan error, waiters)
	for i := range waiters {
		all.Go(func() {
			got, err := resize.Wait(t.Context(), q, ids[i%jobs])
			if err == nil && got != (size{i % jobs, 1}) {
				err = errBroken
			}
			errs <- err
		})
	}
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	all.Wait()
	for range waiters {
		require.NoError(t, <-errs)
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, 5*time.Minute, time.Millisecond)
}
