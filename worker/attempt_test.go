package worker_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// A handler gets its arguments in their type, the job with its headers, and a
// context with the values of the one given to the worker.
func TestHandlerGetsJob(t *testing.T) {
	type invoice struct {
		Number int
		Lines  []string
	}
	type key struct{}
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		kind := pawl.Define[invoice]("invoice", pawl.MaxRetries(1))
		sent := invoice{Number: 7, Lines: []string{"a", "b"}}
		enqueued, err := kind.Enqueue(t.Context(), q, sent, pawl.Header("trace", "42"), pawl.Priority(3))
		require.NoError(t, err)

		var got *pawl.Job[invoice]
		var value any
		w := newWorker(q, worker.Options{})
		worker.Handle(w, kind, func(ctx context.Context, job *pawl.Job[invoice]) error {
			got, value = job, ctx.Value(key{})
			return nil
		})
		ctx := context.WithValue(t.Context(), key{}, "mine")
		require.NoError(t, w.Drain(ctx, pawl.WaitDrained))

		require.Equal(t, sent, got.Args)
		require.Equal(t, 1, got.Attempt)
		require.False(t, got.Last)
		require.Equal(t, enqueued.ID, got.ID)
		require.Equal(t, "invoice", got.Kind)
		require.Equal(t, pawl.DefaultQueue, got.Queue)
		require.Equal(t, int8(3), got.Priority)
		require.Equal(t, map[string]string{"trace": "42"}, got.Headers)
		require.Equal(t, "mine", value)
		requireDone(t, q, enqueued.ID)
	})
}

// textless is an error whose method Error panics on a nil pointer. A handler may
// return such a nil pointer by accident.
type textless struct{ text string }

func (e *textless) Error() string { return e.text }

func explode(value any) error { panic(value) }

// If a handler does not return properly, in whatever way it ends, its attempt has
// failed: the attempt counts, is in the history with the stack, and is retried.
// The slot takes other jobs.
func TestHandlerThatDoesNotReturnProperly(t *testing.T) {
	for _, c := range []struct {
		rule    string
		handler func() error
		history []string // texts that it must have
	}{
		{"panic", func() error { return explode("boom") }, []string{"panic: boom", "explode"}},
		{"panic with an error", func() error { return explode(errBroken) }, []string{"panic: broken", "explode"}},
		{"panic(nil)", func() error { return explode(nil) }, []string{"panic: panic called with nil argument", "explode"}},
		{"a fault of the runtime", func() error { var m map[int]int; fill(m); return nil }, []string{"nil map", "attempt_test.go"}},
		{"runtime.Goexit, as in t.FailNow", func() error { runtime.Goexit(); return nil }, []string{"runtime.Goexit was called", "attempt_test.go"}},
		{"an error that panics when asked for its text", func() error { var e *textless; return e }, []string{"nil pointer", "textless"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				id := enqueue(t, q, "a", pawl.MaxRetries(1))
				r := handleAll(t, q, worker.Options{}, func(*pawl.Job[string]) error { return c.handler() })
				require.Equal(t, []time.Duration{0, 5 * time.Second}, r.at)
				requireDead(t, q, id, pawl.ReasonExhausted, 2)
				for _, failure := range stored(t, q, id).History {
					require.Contains(t, failure.Error, c.history[0])
					require.NotContains(t, failure.Error, "\n", "the error is a line to show to a caller")
					require.Contains(t, failure.Stack, c.history[1])
				}
			})
		})
	}
}

// A panic is a PanicError with value and stack for the policy, and the errors
// that its value wraps still have their effect.
func TestPanicError(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		enqueue(t, q, "a", pawl.MaxRetries(1))
		policy := new(stubborn)
		handleAll(t, q, worker.Options{Policy: policy}, func(*pawl.Job[string]) error { return explode(errBroken) })
		require.Len(t, policy.asked, 1)
		var p *worker.PanicError
		require.ErrorAs(t, policy.asked[0].Err, &p)
		require.ErrorIs(t, p, errBroken)
		require.Equal(t, errBroken, p.Value)
		require.Contains(t, p.Stack, "explode")

		id := enqueue(t, q, "b")
		handleAll(t, q, worker.Options{}, func(*pawl.Job[string]) error { return explode(pawl.Permanent(errBroken)) })
		requireDead(t, q, id, pawl.ReasonPermanent, 1)
	})
}

// A handler may use the queue that it works for: nothing that it waits for waits
// for it.
func TestHandlerUsesQueue(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		enqueue(t, q, "....")
		handled := 0
		w := newWorker(q, worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			handled++
			stats, err := q.Stats(ctx)
			if err != nil || stats.Queues[0].Leased < 1 {
				return errors.Join(err, errors.New("the job under way is not among the leased"))
			}
			e, err := q.Job(ctx, job.ID)
			if err != nil || e.State != pawl.Leased {
				return errors.Join(err, errors.New("the job under way is not leased"))
			}
			if job.Args == "" {
				return nil
			}
			for range 2 { // a tree of jobs
				if _, err := task.Enqueue(ctx, q, job.Args[1:]); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, w.Drain(t.Context(), pawl.WaitDrained))
		require.Equal(t, 31, handled)
		require.Zero(t, counts(t, q))
	})
}

func fill(m map[int]int) { m[1]++ }
