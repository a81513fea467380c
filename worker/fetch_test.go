package worker_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/worker"
)

// Never more than Concurrency handlers run at the same time, and that many do when
// there is work, whether a worker fetches ahead or not.
func TestConcurrency(t *testing.T) {
	for name, queue := range map[string]func(pawl.Queue) pawl.Queue{
		"fetching what it needs": func(q pawl.Queue) pawl.Queue { return q },
		"fetching ahead":         func(q pawl.Queue) pawl.Queue { return slowAcks(q) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				const slots, jobs = 7, 70
				batch := make([]*pawl.Envelope, jobs)
				for i := range batch {
					batch[i], _ = task.Envelope("a")
				}
				require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
				var active, most, handled atomic.Int32
				w := newWorker(queue(q), worker.Options{Concurrency: slots})
				worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error {
					n := active.Add(1)
					for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
					}
					<-time.After(rand.N(time.Second))
					handled.Add(1)
					active.Add(-1)
					return nil
				})
				require.NoError(t, w.Drain(t.Context(), pawl.WaitDrained))
				require.EqualValues(t, slots, most.Load())
				require.EqualValues(t, jobs, handled.Load())
			})
		})
	}
}

// With long handlers a worker asks for exactly what its idle slots can start.
func TestLongHandlersFetchNothingAhead(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		book := newLedger(q)
		w := newWorker(book, worker.Options{Concurrency: 3})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error {
			<-time.After(time.Minute)
			return nil
		})
		for range 10 {
			enqueue(t, q, "a")
		}
		stop := start(t, w)
		<-time.After(115 * time.Second)
		synctest.Wait()
		require.Equal(t, 3, counts(t, q).Leased)
		require.NoError(t, stop())
		for _, r := range book.asked() {
			require.Zero(t, r.Ahead)
			require.LessOrEqual(t, r.Max, 3)
		}
	})
}

// A slot that becomes free goes immediately to a job that waits in the worker, not
// when some ack comes back.
func TestWaitingJobsStartAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		enqueue(t, q, "short")
		for range 4 {
			enqueue(t, q, "long")
		}
		r := handleAll(t, slowAcks(q), worker.Options{}, func(job *pawl.Job[string]) error {
			if job.Args == "long" {
				<-time.After(1500 * time.Millisecond)
			}
			return nil
		})
		require.Equal(t, []time.Duration{0, 0, 1500 * time.Millisecond, 3 * time.Second, 4500 * time.Millisecond}, r.at)
	})
}

// A job that crashed before is leased only for an idle slot. So as soon as a slot
// is idle, the worker repeats the fetch that waits for jobs to run later.
func TestWaitingFetchIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, path := open(t)
		suspect := enqueue(t, q, "suspect")
		_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
		require.NoError(t, err)
		require.NoError(t, q.Close()) // the lease is that of a process that died
		q = reopen(t, path)
		require.Equal(t, 1, stored(t, q, suspect).Crashes)

		book := newLedger(slowAcks(q))
		w := newWorker(book, worker.Options{Concurrency: 1})
		began := time.Now()
		var suspectAt time.Duration
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			switch job.Args {
			case "long":
				<-time.After(time.Minute)
			case "suspect":
				suspectAt = time.Since(began)
			}
			return nil
		})
		enqueue(t, q, "short", pawl.Priority(2))
		enqueue(t, q, "long", pawl.Priority(1))
		stop := start(t, w)
		<-time.After(30 * time.Second)
		synctest.Wait()
		asked := book.asked()
		require.Equal(t, asked[len(asked)-1].Max, asked[len(asked)-1].Ahead, "the worker should wait for jobs to fetch ahead")
		require.Equal(t, pawl.Ready, stored(t, q, suspect).State, "it was leased ahead of its slot")

		<-time.After(40 * time.Second)
		synctest.Wait()
		require.Equal(t, time.Minute, suspectAt, "it starts as soon as the slot is free")
		requireDone(t, q, suspect)
		require.NoError(t, stop())
	})
}

// If jobs are fetched together, those that crashed before start first: they were
// leased for an idle slot, and must not wait behind a running job.
func TestSuspectsStartFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, 4)
		s.jobs[1].Crashes, s.jobs[3].Crashes = 1, 2
		generous := &faulty{Queue: s, fetch: func(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
			r.Max = 4 // more than the worker asks for, so that it must choose
			return s.Fetch(ctx, r)
		}}
		var order []string
		w := newWorker(generous, worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			order = append(order, job.Args)
			return nil
		})
		stop := start(t, w)
		synctest.Wait()
		require.Equal(t, []string{"1", "3", "0", "2"}, order)
		require.NoError(t, stop())
	})
}

// A worker does not fetch jobs again that it has given back, before a slot becomes
// free: jobs do not move to and fro between queue and worker while long handlers
// run.
func TestJobsDoNotShuttle(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		slow := slowAcks(q)
		slow.release = func(ctx context.Context, l *pawl.Lease) error {
			<-time.After(time.Second)
			return q.Settle(ctx, l.Release())
		}
		book := newLedger(slow)
		w := newWorker(book, worker.Options{Concurrency: 4})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			if job.Args == "long" {
				<-ctx.Done()
			}
			return nil
		})
		for range 5 {
			enqueue(t, q, "short")
		}
		for range 20 {
			enqueue(t, q, "long")
		}
		stop := start(t, w)
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, pawl.Counts{Leased: 4, Ready: 16}, counts(t, q))
		asked := len(book.asked())
		<-time.After(time.Hour)
		synctest.Wait()
		require.Len(t, book.asked(), asked)
		require.NoError(t, stop())
	})
}

// What was fetched ahead while handlers were short does not delay a job of higher
// priority once they are long.
func TestPriorityOvertakesWhatWasFetchedAhead(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		var order []string                                          // one slot, so nothing else writes
		w := newWorker(slowAcks(q), worker.Options{Concurrency: 1}) // an ack takes a second
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			order = append(order, job.Args)
			if job.Args == "long" {
				<-time.After(10 * time.Second)
			}
			return nil
		})
		enqueue(t, q, "short")
		for range 5 {
			enqueue(t, q, "long")
		}
		stop := start(t, w)
		<-time.After(5 * time.Second)
		enqueue(t, q, "urgent", pawl.Priority(1))
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"short", "long", "urgent", "long", "long", "long", "long"}, order)
		require.NoError(t, stop())
	})
}
