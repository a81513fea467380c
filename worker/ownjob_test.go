package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// again enqueues the next job of a handler that runs as an interval.
func again(ctx context.Context, q pawl.Enqueuer, opts ...pawl.Option) (pawl.Enqueued, error) {
	return task.Enqueue(ctx, q, "next", append(opts, pawl.Delay(time.Hour))...)
}

// Rule: a handler that enqueues the unique key of its own job gets ErrOwnJob, and the result
// names the job as an existing one. Nothing would be stored, so a handler that returns the
// error fails, and its interval does not end in silence.
func TestHandlerThatEnqueuesItsOwnUniqueKey(t *testing.T) {
	interval := func(t *testing.T, q interface {
		pawl.Queue
		finder
	}) {
		var got pawl.Enqueued
		w := newWorker(q, worker.Options{Middleware: []worker.Middleware{func(next worker.HandlerFunc) worker.HandlerFunc {
			return func(ctx context.Context, l *pawl.Lease) error {
				_, err := again(ctx, q, pawl.Unique("u"))
				assert.ErrorIs(t, err, pawl.ErrOwnJob, "from middleware")
				return next(ctx, l)
			}
		}}})
		worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) (err error) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			got, err = again(ctx, q, pawl.Unique("u"))
			return err
		})
		id := enqueue(t, q, "first", pawl.Unique("u"), pawl.MaxRetries(0))
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, pawl.Enqueued{ID: id, Existing: true}, got)
		requireDead(t, q, id, pawl.ReasonExhausted, 1)
		text := stored(t, q, id).LastError()
		require.Contains(t, text, pawl.ErrOwnJob.Error())
		require.Contains(t, text, `"u"`)
		require.Contains(t, text, id.String())
	}
	t.Run("bolt", func(t *testing.T) { bubble(t, func(t *testing.T, q *bolt.Queue) { interval(t, q) }) })
	t.Run("memory", func(t *testing.T) { inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) { interval(t, q) }) })
}

// Rule: only the own job of a handler gives ErrOwnJob: not another job of the key, nor one
// that the running job leaves the key to.
func TestHandlerThatEnqueuesAnotherJob(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		other := enqueue(t, q, "other", pawl.Unique("other"), pawl.Delay(time.Minute))
		do := map[string]func(ctx context.Context, l *pawl.Lease) (pawl.Enqueued, error){
			"another key": func(ctx context.Context, _ *pawl.Lease) (pawl.Enqueued, error) {
				return again(ctx, q, pawl.Unique("new"))
			},
			"not while leased": func(ctx context.Context, _ *pawl.Lease) (pawl.Enqueued, error) {
				return again(ctx, q, pawl.Unique("not while leased", pawl.Ready, pawl.Delayed))
			},
			"behind its ack": func(ctx context.Context, l *pawl.Lease) (got pawl.Enqueued, err error) {
				err = q.Update(ctx, func(tx *bbolt.Tx) error {
					if err := q.AckTx(tx, l); err != nil {
						return err
					}
					got, err = again(ctx, q.In(tx), pawl.Unique("behind its ack"))
					return err
				})
				return got, err
			},
		}
		results := make(map[string]pawl.Enqueued)
		w := newWorker(q, worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			got, err := do[job.Args](ctx, job.Lease)
			assert.NoError(t, err, job.Args)
			assert.False(t, got.Existing, job.Args)
			assert.NotEqual(t, job.ID, got.ID, job.Args)
			results[job.Args] = got

			got, err = task.Enqueue(ctx, q, "x", pawl.Unique("other"))
			assert.NoError(t, err)
			assert.Equal(t, pawl.Enqueued{ID: other, Existing: true}, got)
			return nil
		})
		for name := range do {
			enqueue(t, q, name, pawl.Unique(name))
		}
		require.NoError(t, w.Drain(t.Context(), pawl.WaitDrained))
		require.Len(t, results, len(do))
		for name, got := range results {
			require.Equal(t, pawl.Delayed, stored(t, q, got.ID).State, name)
		}
	})
}
