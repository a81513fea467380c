package worker_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// Mistakes in handlers and options are reported before the queue is used, all of them in one
// error.
func TestMistakes(t *testing.T) {
	nothing := func(context.Context, *pawl.Job[string]) error { return nil }
	for _, c := range []struct {
		rule   string
		opts   worker.Options
		handle func(*worker.Worker)
		want   []error
		text   []string
	}{
		{
			rule:   "two handlers of one kind",
			handle: func(w *worker.Worker) { worker.Handle(w, task, nothing); worker.Handle(w, task, nothing) },
			want:   []error{worker.ErrHandlerExists}, text: []string{`"task"`},
		},
		{
			rule:   "a kind without a name",
			handle: func(w *worker.Worker) { worker.Handle(w, pawl.Define[string](""), nothing) },
			want:   []error{pawl.ErrInvalid}, text: []string{"kind"},
		},
		{
			rule: "a kind with a bad option",
			handle: func(w *worker.Worker) {
				worker.Handle(w, pawl.Define[string]("bad", pawl.MaxRetries(-1)), nothing)
			},
			want: []error{pawl.ErrInvalid}, text: []string{`"bad"`, "max retries"},
		},
		{
			rule: "a kind with a bad policy",
			handle: func(w *worker.Worker) {
				worker.Handle(w, pawl.Define[string]("bad", pawl.Backoff(pawl.Fixed(-1))), nothing)
			},
			want: []error{pawl.ErrInvalid}, text: []string{`"bad"`, "policy"},
		},
		{rule: "negative concurrency", opts: worker.Options{Concurrency: -1}, want: []error{pawl.ErrInvalid}, text: []string{"Concurrency"}},
		{rule: "negative timeout", opts: worker.Options{Timeout: -1}, want: []error{pawl.ErrInvalid}, text: []string{"Timeout"}},
		{rule: "negative drain", opts: worker.Options{Drain: -1}, want: []error{pawl.ErrInvalid}, text: []string{"Drain"}},
		{rule: "negative grace at a stop", opts: worker.Options{StopGrace: -1}, want: []error{pawl.ErrInvalid}, text: []string{"StopGrace"}},
		{rule: "negative grace of a stuck handler", opts: worker.Options{StuckGrace: -1}, want: []error{pawl.ErrInvalid}, text: []string{"StuckGrace"}},
		{rule: "a bad policy", opts: worker.Options{Policy: pawl.Exponential(time.Second, 0.5)}, want: []error{pawl.ErrInvalid}, text: []string{"policy"}},
		{rule: "a queue without a name", opts: worker.Options{Queues: []string{"a", ""}}, want: []error{pawl.ErrInvalid}, text: []string{"queue"}},
		{rule: "a weight below 1", opts: worker.Options{Weights: map[string]int{"a": 0}}, want: []error{pawl.ErrInvalid}, text: []string{"weight", `"a"`}},
		{rule: "a retry share above 1", opts: worker.Options{RetryShare: 1.5}, want: []error{pawl.ErrInvalid}, text: []string{"RetryShare"}},
		{rule: "middleware that is nil", opts: worker.Options{Middleware: []worker.Middleware{nil}}, want: []error{pawl.ErrInvalid}, text: []string{"Middleware"}},
		{
			rule: "middleware that returns no handler",
			opts: worker.Options{Middleware: []worker.Middleware{
				func(next worker.HandlerFunc) worker.HandlerFunc {
					return func(ctx context.Context, l *pawl.Lease) error { return next(ctx, l) }
				},
				func(worker.HandlerFunc) worker.HandlerFunc { return nil },
			}},
			handle: func(w *worker.Worker) { worker.Handle(w, task, nothing) },
			want:   []error{pawl.ErrInvalid}, text: []string{`"task"`, "Middleware"},
		},
		{
			rule:   "several at once",
			opts:   worker.Options{Concurrency: -1, Queues: []string{strings.Repeat("x", 256)}},
			handle: func(w *worker.Worker) { worker.Handle(w, task, nothing); worker.Handle(w, task, nothing) },
			want:   []error{pawl.ErrInvalid, worker.ErrHandlerExists},
			text:   []string{"Concurrency", "queue", `"task"`},
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			w := newWorker(untouchable{}, c.opts)
			if c.handle != nil {
				c.handle(w)
			}
			for _, err := range []error{w.Run(t.Context()), w.Drain(t.Context(), pawl.WaitDrained), w.ProcessOnce(t.Context())} {
				for _, want := range c.want {
					require.ErrorIs(t, err, want)
				}
				for _, text := range c.text {
					require.ErrorContains(t, err, text)
				}
			}
		})
	}
}

// Rule: a worker says for which kinds it has a handler: those whose registration was right.
func TestHandles(t *testing.T) {
	w := worker.New(nil, nil)
	require.False(t, w.Handles("task"))
	worker.Handle(w, pawl.Define[int]("task"), func(context.Context, *pawl.Job[int]) error { return nil })
	worker.Handle(w, pawl.Define[int]("nil"), nil)
	require.True(t, w.Handles("task"))
	require.False(t, w.Handles("nil"))
}

// No options at all are the defaults.
func TestNilOptions(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a")
		w := worker.New(q, nil)
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return nil })
		require.NoError(t, w.ProcessOnce(t.Context()))
		requireDone(t, q, id)
	})
}

// Rule: a job of a kind that the worker does not handle stays ready where it is, and counts
// nothing. It runs as soon as a worker starts that handles the kind.
func TestUnknownKindStaysReady(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		unknown := pawl.Define[string]("unknown", pawl.MaxRetries(0))
		enqueued, err := unknown.Enqueue(t.Context(), q, "a")
		require.NoError(t, err)
		known := enqueue(t, q, "b")

		old := newWorker(q, worker.Options{Concurrency: 1})
		worker.Handle(old, task, func(context.Context, *pawl.Job[string]) error { return nil })
		stop := start(t, old)
		<-time.After(time.Hour)
		synctest.Wait()
		requireDone(t, q, known)
		left := stored(t, q, enqueued.ID)
		require.Equal(t, pawl.Ready, left.State)
		require.Zero(t, left.Attempts)
		require.Zero(t, left.Crashes)
		require.NoError(t, stop())

		var attempt int
		newer := newWorker(q, worker.Options{})
		worker.Handle(newer, unknown, func(_ context.Context, job *pawl.Job[string]) error {
			attempt = job.Attempt
			return nil
		})
		require.NoError(t, newer.Drain(t.Context(), pawl.WaitDrained))
		require.Equal(t, 1, attempt)
		requireDone(t, q, enqueued.ID)
	})
}

// Rule: ProcessOnce leaves jobs of other kinds alone too.
func TestProcessOnceLeavesOtherKinds(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a")
		w := newWorker(q, worker.Options{})
		worker.Handle(w, pawl.Define[string]("another"), func(context.Context, *pawl.Job[string]) error { return nil })
		require.ErrorIs(t, w.ProcessOnce(t.Context()), pawl.ErrEmpty)
		require.Equal(t, pawl.Ready, stored(t, q, id).State)
	})
}

// Rule: two workers with different handlers on one queue never take each other's jobs, and
// the drain of each ends when its own jobs are done.
func TestWorkersOfDifferentKindsShareAQueue(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		const jobs = 100
		var drained sync.WaitGroup
		ran := make([]atomic.Int32, 2)
		for i, name := range []string{"k1", "k2"} {
			kind := pawl.Define[int](name)
			for n := range jobs {
				_, err := kind.Enqueue(t.Context(), q, n)
				require.NoError(t, err)
			}
			w := newWorker(q, worker.Options{Concurrency: 4})
			worker.Handle(w, kind, func(context.Context, *pawl.Job[int]) error { ran[i].Add(1); return nil })
			drained.Go(func() { assert.NoError(t, w.Drain(context.Background(), pawl.WaitFinished)) })
		}
		drained.Wait()
		require.EqualValues(t, jobs, ran[0].Load())
		require.EqualValues(t, jobs, ran[1].Load())
		require.Equal(t, pawl.Counts{}, counts(t, q))
	})
}

// A worker with no handler, or with nil for one, does not start: it would fetch
// nothing or kill every job. Nor does one over no queue.
func TestUselessWorkerDoesNotStart(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a")
		none := newWorker(q, worker.Options{})
		null := newWorker(q, worker.Options{})
		worker.Handle(null, task, nil)
		nowhere := newWorker(nil, worker.Options{})
		worker.Handle(nowhere, task, func(context.Context, *pawl.Job[string]) error { return nil })
		for _, w := range []*worker.Worker{none, null, nowhere} {
			require.ErrorIs(t, w.Run(t.Context()), pawl.ErrInvalid)
			require.ErrorIs(t, w.Drain(t.Context(), pawl.WaitFinished), pawl.ErrInvalid)
			require.ErrorIs(t, w.ProcessOnce(t.Context()), pawl.ErrInvalid)
		}
		require.Equal(t, pawl.Ready, stored(t, q, id).State)
	})
}

// A worker works on the queues that it names and on no other; naming one twice
// changes nothing.
func TestQueues(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		for _, queue := range []string{"mail", "mail", "reports", "other"} {
			enqueue(t, q, queue, pawl.OnQueue(queue))
		}
		handled := make(map[string]int)
		w := newWorker(q, worker.Options{Concurrency: 1, Queues: []string{"mail", "reports", "mail"}})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			handled[job.Args]++
			return nil
		})
		require.NoError(t, w.ProcessOnce(t.Context()))
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, map[string]int{"mail": 2, "reports": 1}, handled)
		require.ErrorIs(t, w.ProcessOnce(t.Context()), pawl.ErrEmpty)
	})
}
