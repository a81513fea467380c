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

// naming is middleware that notes when an attempt enters and leaves it.
func naming(name string, walk *[]string) worker.Middleware {
	return func(next worker.HandlerFunc) worker.HandlerFunc {
		return func(ctx context.Context, l *pawl.Lease) error {
			*walk = append(*walk, name+" in")
			defer func() { *walk = append(*walk, name+" out") }()
			return next(ctx, l)
		}
	}
}

// The first middleware is the outermost, and every handler is wrapped, whether it was
// registered early or late.
func TestMiddlewareOrder(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		var walk []string
		w := newWorker(q, worker.Options{Middleware: []worker.Middleware{naming("a", &walk), naming("b", &walk)}})
		other := pawl.Define[int]("other")
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { walk = append(walk, "task"); return nil })
		worker.Handle(w, other, func(context.Context, *pawl.Job[int]) error { walk = append(walk, "other"); return nil })
		enqueue(t, q, "a")
		require.NoError(t, w.ProcessOnce(t.Context()))
		_, err := other.Enqueue(t.Context(), q, 1)
		require.NoError(t, err)
		require.NoError(t, w.ProcessOnce(t.Context()))
		require.Equal(t, []string{
			"a in", "b in", "task", "b out", "a out",
			"a in", "b in", "other", "b out", "a out",
		}, walk)
	})
}

// Middleware gets the lease before anything is decoded, and may give the handler
// another context. The handler gets the same lease, for an AckTx.
func TestMiddlewareGetsLease(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		type key struct{}
		var outer, inner *pawl.Lease
		var value any
		w := newWorker(q, worker.Options{Middleware: []worker.Middleware{func(next worker.HandlerFunc) worker.HandlerFunc {
			return func(ctx context.Context, l *pawl.Lease) error {
				outer = l
				return next(context.WithValue(ctx, key{}, l.Headers["trace"]), l)
			}
		}}})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			inner, value = job.Lease, ctx.Value(key{})
			return nil
		})
		id := enqueue(t, q, "a", pawl.Header("trace", "42"))
		require.NoError(t, w.ProcessOnce(t.Context()))
		require.NotNil(t, outer)
		require.Same(t, outer, inner)
		require.Equal(t, id, outer.ID)
		require.Equal(t, "42", value)
	})
}

// What middleware returns decides as if the handler had returned it, whether it called
// the handler or not.
func TestMiddlewareDecides(t *testing.T) {
	for _, c := range []struct {
		rule  string
		do    func(ctx context.Context, l *pawl.Lease, next worker.HandlerFunc) error
		calls int
		check func(t *testing.T, q finder, id pawl.ID)
	}{
		{
			"nil in place of the handler is an ack",
			func(context.Context, *pawl.Lease, worker.HandlerFunc) error { return nil }, 0, requireDone,
		},
		{
			"nil in place of the handler's error is an ack",
			func(ctx context.Context, l *pawl.Lease, next worker.HandlerFunc) error { _ = next(ctx, l); return nil }, 1, requireDone,
		},
		{
			"permanent around the handler's error is permanent",
			func(ctx context.Context, l *pawl.Lease, next worker.HandlerFunc) error {
				return pawl.Permanent(next(ctx, l))
			}, 1,
			func(t *testing.T, q finder, id pawl.ID) { requireDead(t, q, id, pawl.ReasonPermanent, 1) },
		},
		{
			"snooze in place of the handler",
			func(context.Context, *pawl.Lease, worker.HandlerFunc) error { return pawl.Snooze(time.Hour) }, 0,
			func(t *testing.T, q finder, id pawl.ID) {
				require.Equal(t, pawl.Delayed, stored(t, q, id).State)
				require.Zero(t, stored(t, q, id).Attempts)
			},
		},
		{
			"a panic is a failed attempt, with its stack",
			func(context.Context, *pawl.Lease, worker.HandlerFunc) error { return explode("between") }, 0,
			func(t *testing.T, q finder, id pawl.ID) {
				e := stored(t, q, id)
				require.Equal(t, 1, e.Attempts)
				require.Contains(t, e.History[0].Error, "panic: between")
				require.Contains(t, e.History[0].Stack, "explode")
			},
		},
		{
			"the timeout holds for it",
			func(ctx context.Context, _ *pawl.Lease, _ worker.HandlerFunc) error { <-ctx.Done(); return ctx.Err() }, 0,
			func(t *testing.T, q finder, id pawl.ID) {
				require.Contains(t, stored(t, q, id).History[0].Error, worker.ErrTimeout.Error())
			},
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
				calls := 0
				w := newWorker(q, worker.Options{Timeout: time.Minute, Middleware: []worker.Middleware{
					func(next worker.HandlerFunc) worker.HandlerFunc {
						return func(ctx context.Context, l *pawl.Lease) error { return c.do(ctx, l, next) }
					},
				}})
				worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { calls++; return errBroken })
				id := enqueue(t, q, "a")
				require.NoError(t, w.ProcessOnce(t.Context()))
				require.Equal(t, c.calls, calls)
				c.check(t, q, id)
			})
		})
	}
}

// Arguments that do not decode are an error that middleware sees, as of any handler.
func TestMiddlewareSeesUndecodable(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		var seen error
		w := newWorker(q, worker.Options{Middleware: []worker.Middleware{func(next worker.HandlerFunc) worker.HandlerFunc {
			return func(ctx context.Context, l *pawl.Lease) error {
				seen = next(ctx, l)
				return seen
			}
		}}})
		worker.Handle(w, pawl.Define[int]("task"), func(context.Context, *pawl.Job[int]) error {
			assert.Fail(t, "the handler was called")
			return nil
		})
		id := enqueue(t, q, "no number")
		require.NoError(t, w.ProcessOnce(t.Context()))
		require.ErrorIs(t, seen, pawl.ErrPayloadEncoding)
		requireDead(t, q, id, pawl.ReasonPayload, 0)
	})
}
