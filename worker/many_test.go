package worker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// manyJobs enqueues jobs with the arguments "0", "1", and so on.
func manyJobs(t *testing.T, q *bolt.Queue, n int) {
	t.Helper()
	for i := range n {
		_, err := task.Enqueue(t.Context(), q, fmt.Sprint(i), pawl.MaxRetries(0))
		require.NoError(t, err)
	}
}

// argsOf returns the arguments of jobs in one text.
func argsOf(jobs []*pawl.Job[string]) (text string) {
	for _, job := range jobs {
		text += job.Args
	}
	return text
}

// Rule: a call gets up to Max jobs, and as many as there are after Wait.
func TestManyJobsInOneCall(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		manyJobs(t, q, 7)
		w := newWorker(q, worker.Options{Concurrency: 10})
		var mu sync.Mutex
		sizes := make(map[int]int)
		began := time.Now()
		worker.HandleMany(w, task, worker.Many{Max: 3, Wait: time.Minute}, func(_ context.Context, jobs []*pawl.Job[string]) error {
			mu.Lock()
			defer mu.Unlock()
			sizes[len(jobs)]++
			if len(jobs) < 3 {
				require.Equal(t, time.Minute, time.Since(began))
			}
			return nil
		})
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, map[int]int{3: 2, 1: 1}, sizes)
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Zero(t, stats.Queues[0].Counts)
	})
}

// Rule: no call has more jobs than the worker has slots, and none waits for a job that cannot come.
func TestManyNeedsSlots(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		manyJobs(t, q, 4)
		began := time.Now()
		w := newWorker(q, worker.Options{Concurrency: 2})
		worker.HandleMany(w, task, worker.Many{Wait: time.Minute}, func(_ context.Context, jobs []*pawl.Job[string]) error {
			require.Len(t, jobs, 2)
			return nil
		})
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Less(t, time.Since(began), time.Minute)
	})
}

// Rule: each job is settled by itself: Each names those that fail, any other error and a panic fail
// all.
func TestManyErrors(t *testing.T) {
	permanent := pawl.Permanent(errBroken)
	for name, test := range map[string]struct {
		end  func(jobs []*pawl.Job[string]) error
		dead string // the arguments of the jobs that are dead
		text string // of one of their errors
	}{
		"none": {func([]*pawl.Job[string]) error { return nil }, "", ""},
		"some": {func(jobs []*pawl.Job[string]) error {
			failed := make(worker.Each)
			for i, job := range jobs {
				if job.Args == "1" {
					failed[i] = permanent
				}
				if job.Args == "2" {
					failed[i] = nil
				}
			}
			return failed
		}, "1", "broken"},
		"all":                 {func([]*pawl.Job[string]) error { return errBroken }, "012", "broken"},
		"wrapped":             {func([]*pawl.Job[string]) error { return fmt.Errorf("wrapped: %w", permanent) }, "012", "wrapped: broken"},
		"an index too many":   {func([]*pawl.Job[string]) error { return worker.Each{3: errBroken} }, "012", "the handler names job 3 of 3"},
		"a panic":             {func([]*pawl.Job[string]) error { panic("no") }, "012", "panic: no"},
		"a call of Goexit":    {func([]*pawl.Job[string]) error { runtime.Goexit(); return nil }, "012", "Goexit"},
		"a panic of an error": {func([]*pawl.Job[string]) error { panic(errBroken) }, "012", "panic: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				manyJobs(t, q, 3)
				w := newWorker(q, worker.Options{Concurrency: 3})
				worker.HandleMany(w, task, worker.Many{}, func(_ context.Context, jobs []*pawl.Job[string]) error { return test.end(jobs) })
				require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
				dead := ""
				for e, err := range q.Jobs(t.Context(), pawl.Filter{Order: pawl.OrderCreated}) {
					require.NoError(t, err)
					require.Equal(t, pawl.Dead, e.State)
					require.Contains(t, e.LastError(), test.text)
					job, err := task.Job(e)
					require.NoError(t, err)
					dead += job.Args
				}
				require.Equal(t, test.dead, dead)
			})
		})
	}
}

// Rule: a stop ends a call once the drain is over, and its jobs are released.
func TestManyStops(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		manyJobs(t, q, 3)
		w := newWorker(q, worker.Options{Concurrency: 3})
		got := ""
		worker.HandleMany(w, task, worker.Many{}, func(ctx context.Context, jobs []*pawl.Job[string]) error {
			got = argsOf(jobs)
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), worker.ErrStopping)
			return ctx.Err()
		})
		stop := start(t, w)
		time.Sleep(time.Second) // in virtual time
		require.NoError(t, stop())
		require.Len(t, got, 3)
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, stats.Queues[0].Counts.Ready)
	})
}

// Rule: the timeout of the jobs ends the call, and a job that is cancelled does not.
func TestManyContext(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		first, err := task.Enqueue(t.Context(), q, "0", pawl.Timeout(time.Minute), pawl.MaxRetries(0))
		require.NoError(t, err)
		_, err = task.Enqueue(t.Context(), q, "1", pawl.Timeout(2*time.Minute), pawl.MaxRetries(0))
		require.NoError(t, err)
		w := newWorker(q, worker.Options{Concurrency: 2, StuckGrace: time.Hour})
		worker.HandleMany(w, task, worker.Many{}, func(ctx context.Context, jobs []*pawl.Job[string]) error {
			began := time.Now()
			require.NoError(t, q.Cancel(context.Background(), first.ID))
			<-ctx.Done()
			require.GreaterOrEqual(t, time.Since(began), 2*time.Minute-time.Second)
			require.ErrorIs(t, context.Cause(ctx), worker.ErrTimeout)
			return ctx.Err()
		})
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		reasons := make(map[pawl.Reason]int)
		for e, err := range q.Jobs(t.Context(), pawl.Filter{State: pawl.Dead}) {
			require.NoError(t, err)
			reasons[e.Death.Reason]++
		}
		require.Equal(t, map[pawl.Reason]int{pawl.ReasonCancelled: 1, pawl.ReasonExhausted: 1}, reasons)
	})
}

// Rule: a job that is cancelled during a call ends with the call, however long that takes. If the job has a timeout, it is
// dead StuckGrace after that, without the call.
func TestManyCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration // of the cancelled job
		err     error         // of the call
		state   pawl.State    // before the call ends
		done    bool          // afterwards
	}{
		"the call succeeds": {0, nil, pawl.Leased, true},
		"the call fails":    {0, errBroken, pawl.Leased, false},
		"with a timeout":    {time.Minute, nil, pawl.Dead, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				first, err := task.Enqueue(t.Context(), q, "0", pawl.Timeout(c.timeout), pawl.MaxRetries(0))
				require.NoError(t, err)
				_, err = task.Enqueue(t.Context(), q, "1", pawl.MaxRetries(0))
				require.NoError(t, err)
				w := newWorker(q, worker.Options{Concurrency: 2, StuckGrace: 10 * time.Second})
				worker.HandleMany(w, task, worker.Many{}, func(context.Context, []*pawl.Job[string]) error {
					require.NoError(t, q.Cancel(context.Background(), first.ID))
					<-time.After(time.Hour)
					require.Equal(t, c.state, stored(t, q, first.ID).State)
					return c.err
				})
				require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
				if c.done {
					requireDone(t, q, first.ID)
				} else {
					requireCancelled(t, q, first.ID, 1)
				}
			})
		})
	}
}

// Rule: a job that is cancelled while it waits for others does not run, and the others do.
func TestManyLeave(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		manyJobs(t, q, 2)
		w := newWorker(q, worker.Options{Concurrency: 9})
		got := ""
		worker.HandleMany(w, task, worker.Many{Wait: time.Minute}, func(_ context.Context, jobs []*pawl.Job[string]) error {
			got = argsOf(jobs)
			return nil
		})
		stop := start(t, w)
		synctest.Wait()
		for e, err := range q.Jobs(t.Context(), pawl.Filter{State: pawl.Leased}) {
			require.NoError(t, err)
			if job, err := task.Job(e); err == nil && job.Args == "0" {
				require.NoError(t, q.Cancel(t.Context(), e.ID))
			}
		}
		time.Sleep(2 * time.Minute) // in virtual time
		require.NoError(t, stop())
		require.Equal(t, "1", got)
	})
}

// Rule: bad settings are an error at the start.
func TestManyRefuses(t *testing.T) {
	q, _ := open(t)
	for _, m := range []worker.Many{{Max: -1}, {Wait: -1}} {
		w := newWorker(q, worker.Options{})
		worker.HandleMany(w, task, m, func(context.Context, []*pawl.Job[string]) error { return nil })
		require.ErrorIs(t, w.Drain(t.Context(), pawl.WaitDrained), pawl.ErrInvalid)
	}
	w := newWorker(q, worker.Options{})
	worker.HandleMany(w, task, worker.Many{}, nil)
	require.ErrorIs(t, w.Drain(t.Context(), pawl.WaitDrained), pawl.ErrInvalid)
	require.EqualError(t, worker.Each{4: errBroken, 2: errors.New("bad")}, "2 of the jobs failed, first job 2: bad")
	require.EqualError(t, worker.Each{}, "no job failed")
}
