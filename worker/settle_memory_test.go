package worker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// keeping is a queue whose first calls of Settle are cut off: they return an error while the queue
// still reads the settlements.
type keeping struct {
	pawl.Queue
	cutOff int // how many more
	kept   [][]pawl.Settlement
	were   [][]pawl.Settlement // what they were at the time
}

func (q *keeping) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if q.cutOff > 0 {
		q.cutOff--
		q.kept, q.were = append(q.kept, settlements), append(q.were, slices.Clone(settlements))
		return fmt.Errorf("settle: %w", errBroken)
	}
	return q.Queue.Settle(ctx, settlements...)
}

// Rule: a worker changes settlements only after the queue has returned nil for them.
func TestSettlementsOfACutOffCallStay(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		queue := &keeping{Queue: q, cutOff: 1}
		w := newWorker(queue, worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return nil })
		for range 3 {
			for range 20 {
				enqueue(t, q, "a job")
			}
			require.NoError(t, w.Drain(t.Context(), pawl.WaitDrained))
		}
		require.Len(t, queue.kept, 1)
		require.Equal(t, queue.were, queue.kept)
	})
}
