package worker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// stopping is a worker that is stopped a millisecond after its jobs have finished, while
// the first of their acks is under way.
type stopping struct {
	log   logbook
	took  time.Duration // of the stop
	mu    sync.Mutex
	calls []int // how many jobs each ack had
	acked map[string]int
}

// stop runs so many jobs. The first takes a millisecond, the others take two. Function
// ack makes their acks; its argument before is the number of acks before it.
func (s *stopping) stop(t *testing.T, q *memory.Queue, jobs int, ack func(ctx context.Context, before int, leases ...*pawl.Lease) error) {
	t.Helper()
	s.acked = make(map[string]int)
	w := newWorker(&faulty{Queue: q, ack: func(ctx context.Context, leases ...*pawl.Lease) error {
		s.mu.Lock()
		before := len(s.calls)
		s.calls = append(s.calls, len(leases))
		s.mu.Unlock()
		err := ack(ctx, before, leases...)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, l := range leases {
				s.acked[nameOf(l.Envelope)]++
			}
		}
		return err
	}}, worker.Options{Concurrency: jobs, Logger: s.log.logger()})
	worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
		<-time.After(time.Millisecond)
		if job.Args != "0" {
			<-time.After(time.Millisecond)
		}
		return nil
	})
	for i := range jobs {
		enqueue(t, q, fmt.Sprint(i))
	}
	stop := start(t, w)
	<-time.After(3 * time.Millisecond)
	synctest.Wait()
	began := time.Now()
	require.NoError(t, stop())
	s.took = time.Since(began)
}

// A stop waits for the acks that are under way and for those that wait behind them, and
// each job is acked once.
func TestStopWaitsForAcks(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		var s stopping
		s.stop(t, q, 5, func(ctx context.Context, before int, leases ...*pawl.Lease) error {
			<-time.After(time.Duration(3-before) * time.Second)
			return q.Settle(ctx, acksOf(leases)...)
		})
		require.Equal(t, 5*time.Second-2*time.Millisecond, s.took, "3 s of the first ack, which had begun 2 ms before, and 2 s of the next")
		require.Equal(t, []int{1, 4}, s.calls)
		require.Equal(t, map[string]int{"0": 1, "1": 1, "2": 1, "3": 1, "4": 1}, s.acked)
		require.Len(t, emitted.of(pawl.EventSucceeded), 5)
		require.Empty(t, s.log.String())
	})
}

// An ack that was made and then lost its answer to a stop is not made again.
func TestStopWaitsForAcksThatTakeItsGrace(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		var s stopping
		s.stop(t, q, 5, func(ctx context.Context, before int, leases ...*pawl.Lease) error {
			<-time.After([]time.Duration{time.Second, 7 * time.Second}[before]) // 4 s of Drain, 3 s of StopGrace, and part of the last 1.5 s
			return q.Settle(context.WithoutCancel(ctx), acksOf(leases)...)
		})
		require.Equal(t, 8*time.Second-2*time.Millisecond, s.took)
		require.Equal(t, []int{1, 4}, s.calls)
		require.Len(t, emitted.of(pawl.EventSucceeded), 5)
		require.Empty(t, emitted.of(pawl.EventReleased), "what has finished is not given up as if it ran")
		require.Empty(t, s.log.String())
	})
}

// A worker that is stopped while a batched ack hangs returns after its graces. The log
// names each job that is not acked, also jobs whose ack was to follow.
func TestStopLeavesAcksThatHang(t *testing.T) {
	for _, hangs := range []int{0, 1} {
		t.Run(fmt.Sprintf("ack %d", hangs), func(t *testing.T) {
			inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
				var s stopping
				s.stop(t, q, 5, func(ctx context.Context, before int, leases ...*pawl.Lease) error {
					if before >= hangs {
						waitFor(ctx)
						return driver.NotAccepted(ctx)
					}
					return q.Settle(ctx, acksOf(leases)...)
				})
				require.Equal(t, 8500*time.Millisecond, s.took, "4 s of Drain, 3 s of StopGrace and 1.5 s")
				acked := hangs // the first is alone, the others come together
				require.Len(t, emitted.of(pawl.EventSucceeded), acked)
				require.Len(t, s.acked, acked)
				require.Empty(t, emitted.of(pawl.EventReleased))
				require.Equal(t, 5-acked, strings.Count(s.log.String(), "cannot settle a job; it may run again"))
				require.NotContains(t, s.log.String(), "its job is released")
			})
		})
	}
}

// After a partly refused ack, a stop does not make the acks of the refused jobs wait for
// one another, and does not ack the others again.
func TestStopWhileAcksFailForSome(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		var s stopping
		s.stop(t, q, 5, func(ctx context.Context, before int, leases ...*pawl.Lease) error {
			<-time.After(time.Second)
			if before != 1 {
				return q.Settle(ctx, acksOf(leases)...)
			}
			errs := make([]error, len(leases))
			for i, l := range leases {
				if errs[i] = errBroken; i%2 == 0 {
					errs[i] = q.Settle(ctx, l.Ack())
				}
			}
			return driver.SettleErrors(acksOf(leases), errs)
		})
		require.Equal(t, 3*time.Second-2*time.Millisecond, s.took)
		require.Equal(t, []int{1, 4, 1, 1}, s.calls)
		require.Len(t, emitted.of(pawl.EventSucceeded), 5)
	})
}
