package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// Rule: every fetch asks with the kinds, the weights and the retry share of the worker, and the worker
// keeps them whatever the caller does with its map.
func TestRequestHasSettings(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		book := newLedger(q)
		weights := map[string]int{"mail": 3}
		w := newWorker(book, worker.Options{
			Concurrency: 2, Queues: []string{"mail", "reports"}, Weights: weights, RetryShare: 0.25,
		})
		clear(weights)
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return nil })
		enqueue(t, q, "a", pawl.OnQueue("mail"))
		require.NoError(t, w.ProcessOnce(t.Context()))
		require.NoError(t, w.Drain(t.Context(), pawl.WaitDrained))
		want := pawl.Request{
			Queues: []string{"mail", "reports"}, Kinds: []string{"task"}, Weights: map[string]int{"mail": 3},
			RetryShare: 0.25, Max: 1, Wait: pawl.WaitNot,
		}
		asked := book.asked()
		require.Len(t, asked, 2)
		require.Equal(t, want, asked[0])
		want.Max, want.Wait = 2, pawl.WaitDrained
		require.Equal(t, want, asked[1])
	})
}

// A queue of weight 3 has three turns while one of weight 1 has one.
func TestWeights(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		for range 9 {
			enqueue(t, q, "m", pawl.OnQueue("mail"))
			enqueue(t, q, "r", pawl.OnQueue("reports"))
		}
		served := make(map[string]int)
		w := newWorker(q, worker.Options{Concurrency: 1, Queues: []string{"mail", "reports"}, Weights: map[string]int{"mail": 3}})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			served[job.Args]++
			return nil
		})
		for range 12 {
			require.NoError(t, w.ProcessOnce(t.Context()))
		}
		require.Equal(t, map[string]int{"m": 9, "r": 3}, served)
	})
}

// With a retry share, retries do not displace first attempts.
func TestRetryShare(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		first := true
		retries, firsts := 0, 0
		w := newWorker(q, worker.Options{Concurrency: 1, RetryShare: 0.2})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			switch {
			case first:
				return pawl.RetryAfter(0, errBroken)
			case job.Attempt > 1:
				retries++
			default:
				firsts++
			}
			return nil
		})
		for range 20 {
			enqueue(t, q, "fails")
		}
		for range 20 {
			require.NoError(t, w.ProcessOnce(t.Context()))
		}
		first = false
		<-time.After(time.Second)
		for range 20 {
			enqueue(t, q, "new")
		}
		for range 10 {
			require.NoError(t, w.ProcessOnce(t.Context()))
		}
		require.Equal(t, []int{2, 8}, []int{retries, firsts})
	})
}
