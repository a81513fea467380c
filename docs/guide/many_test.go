package guide

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

type Page struct{ URL string }

var Index = pawl.Define[Page]("index")

// handleIndex registers the handler of many pages. Store stores those that have not failed.
func handleIndex(w *worker.Worker, store func(ctx context.Context, jobs []*pawl.Job[Page], failed worker.Each) error) {
	worker.HandleMany(w, Index, worker.Many{Max: 500, Wait: time.Second}, func(ctx context.Context, jobs []*pawl.Job[Page]) error {
		failed := make(worker.Each)
		for i, job := range jobs {
			if job.Args.URL == "" {
				failed[i] = pawl.Permanent(errors.New("no URL"))
			}
		}
		if err := store(ctx, jobs, failed); err != nil {
			return err // all jobs failed
		}
		return failed // those that it names failed
	})
}

// Rule: the handler of the guide gets all jobs in one call, and fails one of them.
func TestMany(t *testing.T) {
	q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
	defer q.Close()
	for _, url := range []string{"a", "", "b"} {
		_, err := Index.Enqueue(t.Context(), q, Page{url})
		require.NoError(t, err)
	}
	w := worker.New(q, &worker.Options{Concurrency: 3, Logger: hclog.NewNullLogger()})
	handleIndex(w, func(_ context.Context, jobs []*pawl.Job[Page], failed worker.Each) error {
		require.Len(t, jobs, 3)
		require.Len(t, failed, 1)
		return nil
	})
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, pawl.Counts{Dead: 1}, stats.Queues[0].Counts)
}
