package worker_test

import (
	"context"
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

// A handler without a timeout may take many lease lengths: heartbeats hold its
// lease. The jobs that were fetched ahead do not wait behind it.
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
		require.Equal(t, pawl.Counts{Leased: 1, Ready: 5}, counts(t, q), "what was fetched ahead goes back")

		<-time.After(6 * time.Minute)
		synctest.Wait()
		require.EqualValues(t, 7, handled.Load(), "a job was lost, or ran twice")
		require.Zero(t, crashes.Load(), "a lease expired")
		require.Zero(t, counts(t, q))
		require.NoError(t, stop())
	})
}

// A heartbeat that fails does no harm if the next one succeeds.
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

// Once the lease is lost the handler's context ends with ErrLeaseLost, and what it returns
// changes nothing: the job is no longer its own. Here it comes again, and does not run beside
// the handler that is slow to notice. After that, the lease is not in doubt.
func TestLeaseLostWhileHandlerRuns(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		var log logbook
		var silent atomic.Bool
		silent.Store(true)
		mute := &faulty{Queue: q, extend: func(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
			if silent.Load() {
				return nil, nil // and nothing is extended
			}
			return q.Extend(ctx, leases...)
		}}
		id := enqueue(t, q, "a")
		r := runs{began: time.Now()}
		active := 0
		w := newWorker(mute, worker.Options{Concurrency: 2, Logger: log.logger()})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			active++
			defer func() { active-- }()
			assert.Equal(t, 1, active, "the job runs twice at a time")
			if r.note(job); len(r.at) > 1 {
				return nil
			}
			<-time.After(45 * time.Second)
			silent.Store(false) // too late, the lease has expired
			<-ctx.Done()
			assert.Equal(t, pawl.ErrLeaseLost, context.Cause(ctx))
			<-time.After(5 * time.Minute)
			return errBroken
		})
		stop := start(t, w)
		<-time.After(10 * time.Minute)
		stopped := time.Now()
		require.NoError(t, stop())
		require.Zero(t, time.Since(stopped), "a settle without a lease is not tried again")
		require.Equal(t, []int{1, 1}, r.attempts, "an attempt that lost its lease does not count")
		require.GreaterOrEqual(t, r.at[1], 5*time.Minute+50*time.Second)
		require.LessOrEqual(t, r.at[1], 6*time.Minute, "the job comes soon after")
		requireDone(t, q, id)
		require.Contains(t, log.String(), "lease was lost while the handler runs")
		require.NotContains(t, log.String(), "in doubt")
	})
}

// A job that waits in the worker and whose lease is lost does not start there.
func TestLeaseLostWhileJobWaits(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		// An ack takes 20 s, so jobs are fetched ahead then, and wait up to 40 s.
		book := newLedger(&faulty{Queue: q, ack: func(ctx context.Context, l ...*pawl.Lease) error {
			<-time.After(20 * time.Second)
			return q.Settle(ctx, acksOf(l)...)
		}})
		var order []string
		w := newWorker(book, worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			order = append(order, job.Args)
			if job.Args == "long" {
				<-time.After(50 * time.Second)
			}
			return nil
		})
		enqueue(t, q, "short")
		enqueue(t, q, "long")
		lost := enqueue(t, q, "lost")
		enqueue(t, q, "kept")
		stop := start(t, w)
		<-time.After(22 * time.Second)
		synctest.Wait()
		require.Equal(t, pawl.Counts{Leased: 3}, counts(t, q))

		require.NoError(t, q.Settle(t.Context(), book.lease(lost).Snooze(time.Hour))) // another worker had it
		<-time.After(5 * time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"short", "long", "kept"}, order)
		require.Equal(t, pawl.Delayed, stored(t, q, lost).State)
		require.NoError(t, stop())
	})
}

// A heartbeat and a settle may cross: the heartbeat then reports the lease of a finished job
// as lost, which has no effect.
func TestHeartbeatCrossesSettle(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		var log logbook
		crossed := 0
		slow := &faulty{Queue: q, extend: func(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
			<-time.After(3 * time.Second) // the job is settled in the meantime
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
