package worker_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

type order struct{ Number int64 }

// drain handles all jobs with one build of a kind, and returns the arguments that its handler got.
func drain[T any](t *testing.T, q *bolt.Queue, k *pawl.Kind[T]) (ran []T) {
	t.Helper()
	w := newWorker(q, worker.Options{Concurrency: 1})
	worker.Handle(w, k, func(_ context.Context, job *pawl.Job[T]) error {
		ran = append(ran, job.Args)
		return nil
	})
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	return ran
}

// Rule: a job whose arguments do not fit the type of its worker does not run and is not
// lost: it is dead for that reason, has no attempt, and runs after a retry under a build
// that reads it.
func TestPayloadThatDoesNotFit(t *testing.T) {
	for name, handle := range map[string]func(t *testing.T, q *bolt.Queue) int{
		"another type": func(t *testing.T, q *bolt.Queue) int {
			return len(drain(t, q, pawl.Define[string]("order")))
		},
		"a renamed field": func(t *testing.T, q *bolt.Queue) int {
			return len(drain(t, q, pawl.Define[struct{ No int64 }]("order")))
		},
		"a field of another type": func(t *testing.T, q *bolt.Queue) int {
			return len(drain(t, q, pawl.Define[struct{ Number string }]("order")))
		},
		"a narrower field": func(t *testing.T, q *bolt.Queue) int {
			return len(drain(t, q, pawl.Define[struct{ Number int8 }]("order")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				old := pawl.Define[order]("order", pawl.MaxRetries(0))
				enqueued, err := old.Enqueue(t.Context(), q, order{300})
				require.NoError(t, err)

				require.Zero(t, handle(t, q), "the handler ran")
				requireDead(t, q, enqueued.ID, pawl.ReasonPayload, 0)
				require.Contains(t, stored(t, q, enqueued.ID).LastError(), pawl.ErrPayloadEncoding.Error())

				n, err := dlq.RetryAll(t.Context(), q, nil, pawl.Filter{Reason: pawl.ReasonPayload})
				require.NoError(t, err)
				require.Equal(t, 1, n)
				require.Equal(t, []order{{300}}, drain(t, q, old))
				requireDone(t, q, enqueued.ID)
			})
		})
	}
}

// Rule: a kind that allows fields which its type lacks runs such jobs.
func TestAllowUnknownFields(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		_, err := pawl.Define[struct{ Number, Gone int }]("order").Enqueue(t.Context(), q, struct{ Number, Gone int }{7, 8})
		require.NoError(t, err)
		require.Equal(t, []order{{7}}, drain(t, q, pawl.Define[order]("order", pawl.AllowUnknownFields())))
	})
}

// Rule: the worker of a kind runs jobs of its former names, also those that a worker
// without an alias left behind.
func TestAlias(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		before, after := pawl.Define[order]("old"), pawl.Define[order]("new", pawl.Alias("old"), pawl.Alias("older"))
		for n, k := range []*pawl.Kind[order]{before, after, pawl.Define[order]("older")} {
			_, err := k.Enqueue(t.Context(), q, order{int64(n)})
			require.NoError(t, err)
		}
		drain(t, q, pawl.Define[order]("third"))
		require.ElementsMatch(t, []order{{0}, {1}, {2}}, drain(t, q, after))
	})
}

// Rule: no two handlers of a worker answer to one name.
func TestAliasIsTaken(t *testing.T) {
	q := memory.New(nil)
	defer q.Close()
	handle := func(names ...*pawl.Kind[order]) error {
		w := newWorker(q, worker.Options{})
		for _, k := range names {
			worker.Handle(w, k, func(context.Context, *pawl.Job[order]) error { return nil })
		}
		return w.Drain(t.Context(), pawl.WaitDrained)
	}
	plain, renamed := pawl.Define[order]("old"), pawl.Define[order]("new", pawl.Alias("old"))
	require.ErrorIs(t, handle(plain, renamed), worker.ErrHandlerExists)
	require.ErrorIs(t, handle(renamed, plain), worker.ErrHandlerExists)
	require.NoError(t, handle(renamed))
}
