package worker_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// Rule: the queues of a worker are served from its start to its stop, also those whose jobs
// none of its slots has while all are busy.
func TestBusyWorkerServesAllItsQueues(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		served := func() (names []string) {
			t.Helper()
			stats, err := q.Stats(t.Context())
			require.NoError(t, err)
			for _, one := range stats.Queues {
				if one.Served {
					names = append(names, one.Name)
				}
			}
			return names
		}
		for _, name := range []string{"a", "b", "c"} {
			require.NoError(t, q.Pause(t.Context(), name))
			require.NoError(t, q.Resume(t.Context(), name))
		}
		w := worker.New(q, &worker.Options{Queues: []string{"a", "b"}, Concurrency: 1})
		started, goOn := make(chan struct{}), make(chan struct{})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error {
			close(started)
			<-goOn
			return nil
		})
		_, err := task.Enqueue(t.Context(), q, "x", pawl.OnQueue("a"))
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		<-started
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, served())
		close(goOn)
		stop()
		require.NoError(t, <-ended)
		require.Empty(t, served())
	})
}

// Rule: a worker runs from the start of Run until a stop begins, not until its last handler returns.
func TestRunning(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{Concurrency: 1})
		release := make(chan struct{})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { <-release; return nil })
		require.False(t, w.Running())
		enqueue(t, q, "a")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		require.True(t, w.Running())
		stop()
		synctest.Wait()
		require.False(t, w.Running(), "the handler has not returned")
		close(release)
		require.NoError(t, <-ended)
		require.False(t, w.Running())
	})
}
