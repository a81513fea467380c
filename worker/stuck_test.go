package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// A worker reports how many of its handlers are stuck. A handler is stuck from the
// moment when its job is settled without it until it returns.
func TestStuck(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		stuck, letGo := gate(t)
		w := newWorker(q, worker.Options{Concurrency: 5, StuckGrace: 10 * time.Second})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			if job.Attempt == 1 && job.Args == "hangs" {
				<-stuck
			}
			return nil
		})
		for range 3 {
			enqueue(t, q, "hangs", pawl.Timeout(time.Minute))
		}
		enqueue(t, q, "works", pawl.Timeout(time.Minute))
		stop := start(t, w)
		<-time.After(70*time.Second - 1)
		synctest.Wait()
		require.Zero(t, w.Stuck(), "before the grace is over")
		<-time.After(1)
		synctest.Wait()
		require.Equal(t, 3, w.Stuck())
		letGo()
		synctest.Wait()
		require.Zero(t, w.Stuck())
		require.NoError(t, stop())
	})
}

// A handler that a stop left behind is stuck for the worker's next Run too: its job
// does not run beside it, by Run or by ProcessOnce, and runs once it has returned. It
// takes no slot of the next Run.
func TestHandlerOfEarlierRun(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		stuck, letGo := gate(t)
		var hangs, works atomic.Int32
		w := newWorker(q, worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			if job.Args == "works" {
				works.Add(1)
			} else if hangs.Add(1) == 1 {
				<-stuck
			}
			return nil
		})
		id := enqueue(t, q, "hangs")
		stop := start(t, w)
		synctest.Wait()
		require.NoError(t, stop())
		requireReleased(t, q, id)
		require.Equal(t, 1, w.Stuck())

		require.NoError(t, w.ProcessOnce(t.Context()))
		require.EqualValues(t, 1, hangs.Load(), "ProcessOnce ran it beside its first handler")
		enqueue(t, q, "works")
		stop = start(t, w)
		<-time.After(time.Minute)
		synctest.Wait()
		require.EqualValues(t, 1, hangs.Load(), "Run ran it beside its first handler")
		require.EqualValues(t, 1, works.Load())
		require.Zero(t, stored(t, q, id).Attempts)

		letGo()
		<-time.After(time.Minute)
		synctest.Wait()
		require.EqualValues(t, 2, hangs.Load())
		require.Zero(t, w.Stuck())
		requireDone(t, q, id)
		require.NoError(t, stop())
	})
}
