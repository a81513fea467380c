package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// A handler without a timeout may take many lease lengths: heartbeats hold its
// lease, and those of the jobs that were fetched ahead and wait behind it.
func TestHeartbeatHoldsLeases(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		var handled, crashes atomic.Int32
		w := newWorker(slowAcks(q), worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			handled.Add(1)
			crashes.Add(int32(job.Crashes))
			if job.Args == "long" {
				<-time.After(10 * time.Minute)
			}
			return nil
		})
		enqueue(t, q, "short")
		enqueue(t, q, "long")
		for range 5 {
			enqueue(t, q, "short")
		}
		stop := start(t, w)

		<-time.After(5 * time.Minute)
		synctest.Wait()
		require.EqualValues(t, 2, handled.Load())
		require.Equal(t, bolt.Counts{Leased: 6}, counts(t, q), "five jobs should wait in the worker")

		<-time.After(6 * time.Minute)
		synctest.Wait()
		require.EqualValues(t, 7, handled.Load(), "a job was lost, or ran twice")
		require.Zero(t, crashes.Load(), "a lease expired")
		require.Zero(t, counts(t, q))
		require.NoError(t, stop())
	})
}

// A heartbeat that fails does no harm when the next one goes through.
func TestHeartbeatFailsNowAndThen(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		beats := 0
		flaky := &faulty{Queue: q, extend: func(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
			if beats++; beats%2 == 1 {
				return nil, errBroken
			}
			return q.Extend(ctx, leases...)
		}}
		enqueue(t, q, "a")
		r := handleAll(t, flaky, worker.Options{}, func(*pawl.Job[string]) error {
			<-time.After(10*time.Minute - 1)
			return nil
		})
		require.Len(t, r.at, 1)
		require.Equal(t, 59, beats, "three beats for each 30s that a lease lasts")
		require.Zero(t, counts(t, q))
	})
}

// Once the lease is lost the handler's context ends with ErrLeaseLost, and what it
// returns changes nothing: the job is somebody else's. It runs again, one crash
// later, when that handler has returned and not before.
func TestLeaseLostWhileHandlerRuns(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		var silent atomic.Bool
		silent.Store(true)
		mute := &faulty{Queue: q, extend: func(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
			if silent.Load() {
				return nil, errBroken
			}
			return q.Extend(ctx, leases...)
		}}
		id := enqueue(t, q, "a")
		active := 0
		var again *pawl.Job[string]
		var againAt time.Duration
		began := time.Now()
		w := newWorker(mute, worker.Options{Concurrency: 2})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			active++
			defer func() { active-- }()
			require.Equal(t, 1, active, "the job runs twice at a time")
			if job.Crashes > 0 || again != nil {
				again, againAt = job, time.Since(began)
				return nil
			}
			<-time.After(45 * time.Second) // the lease has expired
			silent.Store(false)
			<-ctx.Done()
			require.Equal(t, pawl.ErrLeaseLost, context.Cause(ctx))
			<-time.After(5 * time.Minute) // the handler is slow to notice
			again = job
			return errBroken
		})
		stop := start(t, w)
		<-time.After(10 * time.Minute)
		require.NoError(t, stop())
		require.NotNil(t, again)
		require.Equal(t, 1, again.Attempt, "the run that lost its lease counts no attempt")
		require.Greater(t, againAt, 5*time.Minute)
		require.Less(t, againAt, 6*time.Minute+15*time.Second)
		requireDone(t, q, id)
	})
}

// A job that waits in the worker and whose lease is lost does not start there.
func TestLeaseLostWhileJobWaits(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		book := newLedger(slowAcks(q))
		var order []string
		w := newWorker(book, worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			order = append(order, job.Args)
			if job.Args == "long" {
				<-time.After(time.Minute)
			}
			return nil
		})
		enqueue(t, q, "short")
		enqueue(t, q, "long")
		lost := enqueue(t, q, "lost")
		enqueue(t, q, "kept")
		stop := start(t, w)
		<-time.After(5 * time.Second)
		synctest.Wait()
		require.Equal(t, bolt.Counts{Leased: 3}, counts(t, q))

		require.NoError(t, q.Snooze(t.Context(), book.lease(lost), time.Hour)) // somebody else had it
		<-time.After(5 * time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"short", "long", "kept"}, order)
		require.Equal(t, pawl.Delayed, job(t, q, lost).State)
		require.NoError(t, stop())
	})
}

// A heartbeat and a settle may cross: the lease of a job that is done counts as
// lost then, and nothing comes of it.
func TestHeartbeatCrossesSettle(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		var log logbook
		crossed := 0
		slow := &faulty{Queue: q, extend: func(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
			<-time.After(3 * time.Second) // the job settles meanwhile
			lost, err := q.Extend(ctx, leases...)
			crossed += len(lost)
			return lost, err
		}}
		enqueue(t, q, "a")
		enqueue(t, q, "b") // runs while the heartbeat comes back
		opts := worker.Options{Logger: log.logger()}
		r := handleAll(t, slow, opts, func(*pawl.Job[string]) error {
			<-time.After(11 * time.Second)
			return nil
		})
		require.Len(t, r.at, 2)
		require.Equal(t, 1, crossed)
		require.Empty(t, log.String())
	})
}
