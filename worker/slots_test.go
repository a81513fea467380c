package worker_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// A handler that ends its goroutine leaves its slot, the only one, to the jobs that wait:
// they start immediately, and not only when the first is settled in the queue.
func TestGoexitLeavesTheSlot(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		slow := slowAcks(q) // so that it fetches ahead
		slow.nack = func(ctx context.Context, l *pawl.Lease, delay time.Duration, cause error) error {
			<-time.After(time.Hour)
			return q.Settle(ctx, l.Nack(delay, cause))
		}
		jobs := []string{"first", "long", "goexit", "goexit", "a", "goexit", "b"}
		for _, job := range jobs {
			enqueue(t, q, job, pawl.MaxRetries(1))
		}
		began := time.Now()
		var order []string
		var at []time.Duration
		w := newWorker(slow, worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			if job.Last { // the retries, an hour later
				return nil
			}
			order, at = append(order, job.Args), append(at, time.Since(began))
			switch job.Args {
			case "long": // longer than the first ack: the others are fetched in that time
				<-time.After(1500 * time.Millisecond)
			case "goexit":
				<-time.After(10 * time.Millisecond)
				runtime.Goexit()
			default:
				<-time.After(10 * time.Millisecond)
			}
			return nil
		})
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, jobs, order)
		const ms = time.Millisecond
		require.Equal(t, []time.Duration{0, 10 * ms, 1510 * ms, 1520 * ms, 1530 * ms, 1540 * ms, 1550 * ms}, at)
		require.Len(t, emitted.of(pawl.EventSucceeded), len(jobs))
		require.Len(t, emitted.of(pawl.EventRetried), 3)
	})
}

// slotsNow counts the goroutines of slots, in all workers.
func slotsNow() int {
	stacks := make([]byte, 4<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "worker.(*session).slot(")
}

// However many jobs wait in a worker, it has no more goroutines with handlers than slots,
// and none while it has nothing to do.
func TestOneGoroutineForEachSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, jobs = 5, 200
		s := newShelf(t, jobs)
		generous := &faulty{Queue: s, fetch: func(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
			r.Max = jobs // all in one fetch
			return s.Fetch(ctx, r)
		}, nack: func(context.Context, *pawl.Lease, time.Duration, error) error { return nil }}
		var active, handled atomic.Int32
		w := newWorker(generous, worker.Options{Concurrency: slots})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			if n := active.Add(1); n > slots {
				t.Errorf("%d handlers in %d slots", n, slots)
			}
			defer active.Add(-1)
			defer handled.Add(1)
			<-time.After(50 * time.Millisecond) // less than the time after which waiting jobs go back
			switch len(job.Args) + int(job.Args[0]-'0')%3 {
			case 3:
				runtime.Goexit()
			case 4:
				panic("boom")
			}
			return nil
		})
		stop := start(t, w)
		synctest.Wait()
		require.Zero(t, s.left())
		<-time.After(25 * time.Millisecond)
		for round := range jobs / slots {
			synctest.Wait()
			require.EqualValues(t, slots, active.Load())
			require.EqualValues(t, round*slots, handled.Load())
			require.Equal(t, slots, slotsNow(), "of which %d wait", jobs-(round+1)*slots)
			<-time.After(50 * time.Millisecond)
		}
		synctest.Wait()
		require.EqualValues(t, jobs, handled.Load())
		require.Zero(t, slotsNow())
		require.NoError(t, stop())
	})
}

type valueKey struct{}

// The context of each attempt has the values of the worker's, and belongs only to that attempt:
// it ends when the attempt ends, in whatever way, and not before.
func TestContextOfARunEndsWithIt(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		ends := []string{"first", "nil", "error", "panic", "goexit", "nil", "last"}
		for _, end := range ends {
			enqueue(t, q, end, pawl.MaxRetries(0))
		}
		var runs []context.Context
		w := newWorker(slowAcks(q), worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			for i, before := range runs {
				assert.ErrorIs(t, before.Err(), context.Canceled, "attempt %d goes on", i)
				assert.Equal(t, context.Canceled, context.Cause(before))
			}
			assert.NoError(t, ctx.Err())
			assert.Equal(t, "value", ctx.Value(valueKey{}))
			runs = append(runs, ctx)
			switch job.Args {
			case "error":
				return errBroken
			case "panic":
				panic("boom")
			case "goexit":
				runtime.Goexit()
			}
			return nil
		})
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "value"))
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		<-time.After(time.Minute)
		synctest.Wait()
		require.Len(t, runs, len(ends))
		for _, run := range runs {
			require.Equal(t, context.Canceled, context.Cause(run), "also while the worker goes on")
			require.Equal(t, "value", run.Value(valueKey{}))
		}
		cancel()
		require.NoError(t, <-ended)
	})
}
