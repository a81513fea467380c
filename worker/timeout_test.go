package worker_test

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// The context of an attempt ends at the job's timeout, or else at the worker's, with
// ErrTimeout as its cause. What the handler then returns decides.
func TestTimeout(t *testing.T) {
	for _, c := range []struct {
		rule    string
		job     []pawl.Option
		worker  time.Duration
		returns func(ctx context.Context) error
		after   time.Duration
		check   func(t *testing.T, q finder, id pawl.ID)
	}{
		{
			"an error at the job's timeout is a failed attempt",
			[]pawl.Option{pawl.Timeout(3 * time.Second)}, 0, context.Context.Err, 3 * time.Second, requireTimedOut,
		},
		{
			"the worker's timeout is for jobs without one",
			nil, time.Minute, context.Context.Err, time.Minute, requireTimedOut,
		},
		{
			"the job's timeout goes before a shorter one of the worker",
			[]pawl.Option{pawl.Timeout(time.Hour)}, time.Minute, context.Context.Err, time.Hour, requireTimedOut,
		},
		{
			"any other error there counts as timed out too",
			nil, time.Minute, func(context.Context) error { return errBroken }, time.Minute, requireTimedOut,
		},
		{
			"nil after the timeout is a success: the work is done",
			nil, time.Minute, func(context.Context) error { return nil }, time.Minute, requireDone,
		},
		{
			"permanent after the timeout is permanent",
			nil, time.Minute, func(context.Context) error { return pawl.Permanent(errBroken) }, time.Minute,
			func(t *testing.T, q finder, id pawl.ID) { requireDead(t, q, id, pawl.ReasonPermanent, 1) },
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				id := enqueue(t, q, "a", append(c.job, pawl.MaxRetries(0))...)
				w := newWorker(q, worker.Options{Timeout: c.worker})
				worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error {
					began := time.Now()
					<-ctx.Done()
					assert.Equal(t, c.after, time.Since(began))
					assert.Equal(t, worker.ErrTimeout, context.Cause(ctx))
					assert.Equal(t, context.DeadlineExceeded, ctx.Err())
					return c.returns(ctx)
				})
				require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
				c.check(t, q, id)
			})
		})
	}
}

func requireTimedOut(t *testing.T, q finder, id pawl.ID) {
	t.Helper()
	requireDead(t, q, id, pawl.ReasonExhausted, 1)
	require.Contains(t, stored(t, q, id).History[0].Error, worker.ErrTimeout.Error())
}

// The longest timeout means none, not a timeout that is over immediately.
func TestLongestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a", pawl.Timeout(math.MaxInt64))
		r := handleAll(t, q, worker.Options{}, func(*pawl.Job[string]) error {
			<-time.After(time.Hour)
			return nil
		})
		require.Len(t, r.at, 1)
		requireDone(t, q, id)
	})
}

// A handler that ignores its timeout: StuckGrace later its attempt counts as failed,
// and a line says so. Its slot stays taken until it returns, the other slots keep
// working, and its job does not run again beside it.
func TestStuckHandler(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		var log logbook
		stuck, letGo := gate(t)
		var hangs, active, most atomic.Int32
		w := newWorker(q, worker.Options{
			Concurrency: 2, Policy: pawl.Fixed(time.Second), Logger: log.logger(),
		})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			if job.Args == "hangs" {
				if hangs.Add(1) == 1 {
					<-stuck
				}
				return nil
			}
			most.Store(max(most.Load(), active.Add(1)))
			<-time.After(time.Minute)
			active.Add(-1)
			return nil
		})
		id := enqueue(t, q, "hangs", pawl.Timeout(10*time.Second), pawl.Priority(1))
		others := 10
		for range others {
			enqueue(t, q, "works")
		}
		stop := start(t, w)

		<-time.After(40*time.Second - 1)
		synctest.Wait()
		require.Equal(t, pawl.Leased, stored(t, q, id).State, "before the grace is over")
		<-time.After(1)
		synctest.Wait()
		failed := stored(t, q, id)
		require.Equal(t, pawl.Delayed, failed.State, "when the grace is over")
		require.Equal(t, 1, failed.Attempts)
		require.Zero(t, failed.Crashes)
		require.Contains(t, failed.History[0].Error, worker.ErrTimeout.Error())
		require.Contains(t, log.String(), "handler ignores the end of its context")
		require.Contains(t, log.String(), "stuck=1")

		<-time.After(20 * time.Minute)
		synctest.Wait()
		require.EqualValues(t, 1, most.Load(), "the slot of the stuck handler was given away")
		require.EqualValues(t, 1, hangs.Load(), "the job ran twice at a time")
		require.Equal(t, 1, stored(t, q, id).Attempts, "the second attempt is still to come")
		require.Zero(t, counts(t, q).Ready, "the other slot worked")

		letGo()
		enqueue(t, q, "works")
		enqueue(t, q, "works")
		<-time.After(2 * time.Minute)
		synctest.Wait()
		require.EqualValues(t, 2, hangs.Load(), "once the handler returned, the job runs again")
		require.EqualValues(t, 2, most.Load(), "and its slot works")
		requireDone(t, q, id)
		require.NoError(t, stop())
		require.Zero(t, counts(t, q))
		require.NotContains(t, log.String(), "settle", "a late return has nothing to settle")
	})
}

// A handler that returns at the moment when it is given up is settled once, by the
// one or the other.
func TestStuckHandlerReturnsAtLast(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		const jobs = 50
		var log logbook
		w := newWorker(q, worker.Options{Concurrency: jobs, StuckGrace: time.Second, Logger: log.logger()})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error {
			<-time.After(3 * time.Second)
			return nil
		})
		for range jobs {
			enqueue(t, q, "a", pawl.Timeout(2*time.Second), pawl.MaxRetries(0))
		}
		stop := start(t, w)
		<-time.After(time.Minute)
		require.NoError(t, stop())
		givenUp := strings.Count(log.String(), "handler ignores the end of its context")
		require.Equal(t, pawl.Counts{Dead: givenUp}, counts(t, q))
		require.NotContains(t, log.String(), "settle")
	})
}

// A handler that hangs in its last attempt leaves a dead job; what it returns
// in the end settles nothing.
func TestStuckInLastAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		stuck, letGo := gate(t)
		var log logbook
		w := newWorker(q, worker.Options{Concurrency: 2, StuckGrace: time.Second, Logger: log.logger()})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { <-stuck; return nil })
		id := enqueue(t, q, "a", pawl.Timeout(time.Second), pawl.MaxRetries(0))
		began := time.Now()
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, 2*time.Second, time.Since(began))
		requireDead(t, q, id, pawl.ReasonExhausted, 1)
		letGo()
		synctest.Wait()
		requireDead(t, q, id, pawl.ReasonExhausted, 1)
		require.NotContains(t, log.String(), "settle")
	})
}
