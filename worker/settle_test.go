package worker_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// An acknowledgement holds no slot: with a single one and acks that do not come
// back, handlers go on until MaxUnsettled jobs are finished and not settled. Then
// none starts, and none is leased for it.
func TestAckHoldsNoSlot(t *testing.T) {
	for _, c := range []struct {
		rule    string
		settled int32 // calls to Ack that come back, after a second: the worker fetches ahead then
	}{
		{"fetching what it needs", 0},
		{"fetching ahead", 1},
	} {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const jobs = 3 * worker.MaxUnsettled
				s := newShelf(t, jobs)
				held, letAck := gate(t)
				var handled, calls, acked atomic.Int32
				blocked := &faulty{Queue: s, ack: func(_ context.Context, leases ...*pawl.Lease) error {
					if calls.Add(1) <= c.settled {
						<-time.After(time.Second)
						acked.Add(int32(len(leases)))
						return nil
					}
					<-held
					return nil
				}}
				w := newWorker(blocked, worker.Options{Concurrency: 1})
				worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { handled.Add(1); return nil })
				stop := start(t, w)

				<-time.After(5 * time.Second)
				synctest.Wait()
				require.Equal(t, worker.MaxUnsettled+acked.Load(), handled.Load())
				if c.settled == 0 {
					require.Equal(t, jobs-worker.MaxUnsettled, s.left())
				}
				letAck()
				synctest.Wait()
				require.EqualValues(t, jobs, handled.Load(), "acks that come back let the others start")
				require.NoError(t, stop())
			})
		})
	}
}

// A queue that cannot write just now is asked again: the work is done, and its
// result is not thrown away. Meanwhile the lease is held and other jobs run.
func TestSettleIsRetried(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		began := time.Now()
		full := &faulty{Queue: q, ack: func(ctx context.Context, l ...*pawl.Lease) error {
			if time.Since(began) < 10*time.Minute {
				return fmt.Errorf("ack: %w", bolt.ErrDisk)
			}
			return q.Ack(ctx, l...)
		}}
		for range 5 {
			enqueue(t, q, "a")
		}
		r := handleAll(t, full, worker.Options{}, func(*pawl.Job[string]) error { return nil })
		require.Len(t, r.at, 5, "no job runs twice")
		require.Equal(t, make([]time.Duration, 5), r.at, "no job waits for the ack of another")
		require.GreaterOrEqual(t, time.Since(began), 10*time.Minute)
		require.Zero(t, counts(t, q))
	})
}

// The pauses between tries are no measure of how long a commit takes: a disk that
// was full does not make a worker with long handlers fetch ahead.
func TestRetriedSettleFetchesNotAhead(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		book := newLedger(q)
		began := time.Now()
		full := &faulty{Queue: book, ack: func(ctx context.Context, l ...*pawl.Lease) error {
			if time.Since(began) < time.Minute {
				return bolt.ErrDisk
			}
			return q.Ack(ctx, l...)
		}}
		for range 50 {
			enqueue(t, q, "a")
		}
		handleAll(t, full, worker.Options{}, func(*pawl.Job[string]) error {
			<-time.After(5 * time.Second)
			return nil
		})
		for _, r := range book.asked() {
			require.Equal(t, 1, r.Max)
		}
	})
}

// A settle that never goes through ends with the worker: the job is given up, with
// a line in the log, and Run returns.
func TestSettleEndsWithStop(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		var log logbook
		broken := &faulty{Queue: q, ack: func(context.Context, ...*pawl.Lease) error { return errBroken }}
		w := newWorker(broken, worker.Options{Logger: log.logger()})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return nil })
		id := enqueue(t, q, "a")
		stop := start(t, w)
		<-time.After(time.Hour)
		synctest.Wait()
		require.Equal(t, pawl.Leased, stored(t, q, id).State, "heartbeats hold the lease meanwhile")
		require.Zero(t, stored(t, q, id).Crashes)
		require.Contains(t, log.String(), "cannot settle a job yet; trying again")
		began := time.Now()
		require.NoError(t, stop())
		require.Equal(t, 20*time.Second, time.Since(began), "Drain, and StopGrace twice")
		require.Contains(t, log.String(), "cannot settle a job; it may run again")
	})
}

// A queue that is closed under a worker ends it, with that error. A handler that
// runs may finish; its job runs again after the next open.
func TestQueueClosedUnderWorker(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("busy=%v", busy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, path := open(t)
				w := newWorker(q, worker.Options{})
				worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error {
					<-time.After(5 * time.Second)
					return nil
				})
				var id pawl.ID
				if busy {
					id = enqueue(t, q, "a")
				}
				stopped := make(chan error)
				go func() { stopped <- w.Run(t.Context()) }()
				synctest.Wait()
				began := time.Now()
				require.NoError(t, q.Close())
				require.ErrorIs(t, <-stopped, pawl.ErrClosed)
				require.ErrorIs(t, w.Run(t.Context()), pawl.ErrClosed, "nor does it start again")
				if !busy {
					require.Zero(t, time.Since(began))
					return
				}
				require.Equal(t, 5*time.Second, time.Since(began))
				q = reopen(t, path)
				require.Equal(t, 1, stored(t, q, id).Crashes)
			})
		})
	}
}

// Errors after which no later call can succeed end a worker at once; others do
// not.
func TestFetchFails(t *testing.T) {
	for _, fatal := range []error{pawl.ErrClosed, pawl.ErrPoisoned, pawl.ErrUnknownOutcome} {
		t.Run(fatal.Error(), func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				w := newWorker(&faulty{Queue: q, fetch: func(context.Context, pawl.Request) ([]*pawl.Lease, error) {
					return nil, fmt.Errorf("fetch: %w", fatal)
				}}, worker.Options{})
				worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return nil })
				require.ErrorIs(t, w.Run(t.Context()), fatal)
				require.ErrorIs(t, w.ProcessOnce(t.Context()), fatal)
			})
		})
	}
	t.Run("any other is tried again", func(t *testing.T) {
		bubble(t, func(t *testing.T, q *bolt.Queue) {
			var tries []time.Time
			flaky := &faulty{Queue: q, fetch: func(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
				if tries = append(tries, time.Now()); len(tries) <= 5 {
					return nil, bolt.ErrDisk
				}
				return q.Fetch(ctx, r)
			}}
			id := enqueue(t, q, "a")
			r := handleAll(t, flaky, worker.Options{}, func(*pawl.Job[string]) error { return nil })
			require.Len(t, r.at, 1)
			requireDone(t, q, id)
			require.Len(t, slices.Compact(tries), 6, "each try waits a while for the next")
		})
	})
	t.Run("a stop does not wait for the next try", func(t *testing.T) {
		bubble(t, func(t *testing.T, q *bolt.Queue) {
			failing := &faulty{Queue: q, fetch: func(context.Context, pawl.Request) ([]*pawl.Lease, error) { return nil, bolt.ErrDisk }}
			w := newWorker(failing, worker.Options{})
			worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return nil })
			stop := start(t, w)
			<-time.After(time.Hour)
			began := time.Now()
			require.NoError(t, stop())
			require.Zero(t, time.Since(began))
		})
	})
}
