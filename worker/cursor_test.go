package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

type row struct{ Number int }

var importing = pawl.Define[string]("import", pawl.MaxRetries(2), pawl.Backoff(pawl.Fixed(time.Second)))

// Rule: an attempt finds the last cursor that an earlier one saved, even after failures, the death of
// the job, or a forward to another queue.
func TestCursor(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		other := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer other.Close()
		var begun []int
		handler := func(ctx context.Context, job *pawl.Job[string]) error {
			var at row
			found, err := job.LoadCursor(&at)
			if err != nil || found != (at.Number > 0) {
				return pawl.Permanent(fmt.Errorf("found %v, %+v: %w", found, at, err))
			}
			begun = append(begun, at.Number)
			for range 3 {
				if at.Number++; at.Number > 11 {
					return nil
				}
				if err := job.SaveCursor(ctx, at); err != nil {
					return err
				}
			}
			var again row
			if found, err := job.LoadCursor(&again); !found || err != nil || again != at {
				return pawl.Permanent(fmt.Errorf("the attempt itself found %+v: %w", again, err))
			}
			return errors.New("interrupted")
		}
		work := func(q pawl.Queue) {
			w := newWorker(q, worker.Options{})
			worker.Handle(w, importing, handler)
			require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		}
		_, err := importing.Enqueue(t.Context(), q, "rows")
		require.NoError(t, err)
		work(q)
		require.Equal(t, []int{0, 3, 6}, begun)
		n, err := dlq.Forward(t.Context(), q, dlq.ToQueue(other, "imports"), nil, pawl.Filter{})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		w := newWorker(other, worker.Options{Queues: []string{"imports"}})
		worker.Handle(w, importing, handler)
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, []int{0, 3, 6, 9}, begun)
		for _, err := range other.Jobs(t.Context(), pawl.Filter{}) {
			require.NoError(t, err)
			t.Fatal("a job is left")
		}
	})
}

// Rule: what cannot be saved gives an error that says why, and the cursor stays.
func TestCursorRefused(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(q, worker.Options{})
		ran := false
		worker.Handle(w, importing, func(ctx context.Context, job *pawl.Job[string]) error {
			ran = true
			require.NoError(t, job.SaveCursor(ctx, row{7}))
			require.ErrorIs(t, job.SaveCursor(ctx, make([]byte, pawl.MaxCursor)), pawl.ErrCursorTooLarge)
			require.ErrorIs(t, job.SaveCursor(ctx, func() {}), pawl.ErrPayloadEncoding)
			var other struct{ Name string }
			_, err := job.LoadCursor(&other)
			require.ErrorIs(t, err, pawl.ErrPayloadEncoding, "of another type")
			var at row
			found, err := job.LoadCursor(&at)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, row{7}, at)
			return nil
		})
		_, err := importing.Enqueue(t.Context(), q, "rows")
		require.NoError(t, err)
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.True(t, ran)

		job := &pawl.Job[string]{Envelope: &pawl.Envelope{Kind: "import"}}
		require.ErrorIs(t, job.SaveCursor(t.Context(), row{1}), pawl.ErrInvalid, "no worker runs it")
	})
}

// uncursored is a queue that neither declares nor has cursors.
type uncursored struct{ pawl.Queue }

// Rule: a queue without cursors refuses them by name.
func TestCursorUnsupported(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		w := newWorker(uncursored{q}, worker.Options{})
		var refused error
		worker.Handle(w, importing, func(ctx context.Context, job *pawl.Job[string]) error {
			refused = job.SaveCursor(ctx, row{1})
			return nil
		})
		_, err := importing.Enqueue(t.Context(), q, "rows")
		require.NoError(t, err)
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.ErrorIs(t, refused, pawl.ErrUnsupported)
		require.ErrorContains(t, refused, "cursors")
	})
}
