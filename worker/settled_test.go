package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// unsettled is a queue that a worker must not settle at.
type unsettled struct {
	pawl.Queue
	t *testing.T
}

func (u unsettled) Settle(_ context.Context, settlements ...pawl.Settlement) error {
	u.t.Errorf("the worker settled: %v", settlements)
	return nil
}

// Once its handler has acked a job in a transaction the worker settles nothing,
// whatever the handler returns; an error of the handler is logged.
func TestSettledByHandler(t *testing.T) {
	for _, c := range []struct {
		rule    string
		returns func() error
		logs    string
	}{
		{"nil is no second ack", func() error { return nil }, ""},
		{"an error is no failure", func() error { return errBroken }, errBroken.Error()},
		{"nor is a panic", func() error { return explode("late") }, "panic: late"},
		{"permanent is none either", func() error { return pawl.Permanent(errBroken) }, errBroken.Error()},
		{"and a snooze is too late", func() error { return pawl.Snooze(time.Minute) }, "snoozed"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
				var log logbook
				w := newWorker(unsettled{q, t}, worker.Options{Concurrency: 1, Logger: log.logger()})
				worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
					ackTx(t, q, job.Lease)
					return c.returns()
				})
				ids := []pawl.ID{enqueue(t, q, "a"), enqueue(t, q, "b")}
				require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
				for _, id := range ids {
					requireDone(t, q, id)
				}
				require.Len(t, emitted.of(pawl.EventSucceeded), 2)
				if c.logs == "" {
					require.Empty(t, log.String())
					return
				}
				require.Contains(t, log.String(), "[ERROR]")
				require.NotContains(t, log.String(), "attempt failed")
				for _, text := range []string{c.logs, ids[0].String(), "kind=task"} {
					require.Contains(t, log.String(), text)
				}
			})
		})
	}
}

// Heartbeats leave out a job that its handler has acked: the handler may continue, and
// its lease is not extended.
func TestHeartbeatLeavesOutSettled(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		extended := make(map[pawl.ID]int)
		counting := &faulty{Queue: q, extend: func(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
			for _, l := range leases {
				extended[l.ID]++
			}
			return q.Extend(ctx, leases...)
		}}
		w := newWorker(counting, worker.Options{Concurrency: 2})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			if job.Args == "acks" {
				<-time.After(15 * time.Second)
				ackTx(t, q, job.Lease)
			}
			<-time.After(2 * time.Minute)
			assert.NoError(t, ctx.Err())
			return nil
		})
		acks, works := enqueue(t, q, "acks"), enqueue(t, q, "works")
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, 1, extended[acks], "the one beat before its ack")
		require.Greater(t, extended[works], 5)
	})
}

// A heartbeat and an ack in a transaction may cross: the heartbeat then finds no
// lease, but the lease is not lost. The handler's context does not end.
func TestSettledLeaseIsNotLost(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		var log logbook
		crossed := 0
		slow := &faulty{Queue: q, extend: func(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
			<-time.After(3 * time.Second) // the handler acks in the meantime
			lost, err := q.Extend(ctx, leases...)
			crossed += len(lost)
			return lost, err
		}}
		w := newWorker(slow, worker.Options{Concurrency: 1, Logger: log.logger()})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			<-time.After(11 * time.Second)
			ackTx(t, q, job.Lease)
			<-time.After(time.Minute)
			assert.NoError(t, context.Cause(ctx))
			return nil
		})
		id := enqueue(t, q, "a")
		require.NoError(t, w.ProcessOnce(t.Context()))
		require.Equal(t, 1, crossed)
		require.Empty(t, log.String())
		requireDone(t, q, id)
	})
}

// A handler that hangs after it acked its job is stuck like any other, but there is no
// attempt to fail, and nothing waits for it.
func TestSettledHandlerHangs(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		stuck, letGo := gate(t)
		var log logbook
		w := newWorker(unsettled{q, t}, worker.Options{Concurrency: 2, StuckGrace: time.Second, Logger: log.logger()})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			ackTx(t, q, job.Lease)
			<-stuck
			return nil
		})
		id := enqueue(t, q, "a", pawl.Timeout(time.Second))
		began := time.Now()
		require.NoError(t, w.ProcessOnce(t.Context()))
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, 1, w.Stuck())
		require.NotContains(t, log.String(), "attempt failed")
		requireDone(t, q, id)
		letGo()
		synctest.Wait()
		require.Zero(t, w.Stuck())
	})
}

// A stop does not release what its handler has acked.
func TestStopLeavesSettled(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		stuck, _ := gate(t)
		var log logbook
		w := newWorker(unsettled{q, t}, worker.Options{Logger: log.logger()})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			ackTx(t, q, job.Lease)
			<-stuck
			return nil
		})
		id := enqueue(t, q, "a")
		stop := start(t, w)
		synctest.Wait()
		require.NoError(t, stop())
		require.NotContains(t, log.String(), "released")
		requireDone(t, q, id)
	})
}
