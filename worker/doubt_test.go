package worker_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// extending is a test's answer to an extension that the queue has carried out.
type extending func(ctx context.Context, nth int) error

// doubtful is a queue that extends leases, but whose answers may be lost.
func doubtful(q pawl.Queue, answer extending) *faulty {
	nth := 0
	return &faulty{Queue: q, extend: func(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
		nth++
		lost, err := q.Extend(context.WithoutCancel(ctx), leases...)
		if err == nil {
			err = answer(ctx, nth)
		}
		return lost, err
	}}
}

// Rule: when no extension came back before a lease expires, the handler's context ends at that time
// with ErrLeaseInDoubt. The time counts from the start of the last call that came back.
func TestLeaseInDoubt(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer extending
		ends   time.Duration
		beats  int // until the context ends
	}{
		{"every answer is lost", func(context.Context, int) error { return errBroken }, 30 * time.Second, 3},
		{"the outcome is unknown", func(context.Context, int) error { return errCut }, 30 * time.Second, 3},
		{"no answer", func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }, 30 * time.Second, 2},
		{"from the third", func(_ context.Context, nth int) error {
			if nth < 3 {
				return nil
			}
			return errBroken
		}, 50 * time.Second, 5},
		{"after a slow one", func(_ context.Context, nth int) error {
			if nth == 1 {
				<-time.After(5 * time.Second)
				return nil
			}
			return errBroken
		}, 40 * time.Second, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
				var beats, ended atomic.Int64 // extensions, and nanoseconds, until the context ended
				doubt := doubtful(q, func(ctx context.Context, nth int) error {
					if ended.Load() == 0 {
						beats.Store(int64(nth))
					}
					return c.answer(ctx, nth)
				})
				id := enqueue(t, q, "a")
				w := newWorker(doubt, worker.Options{})
				began, runs := time.Now(), 0
				worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
					if runs++; runs > 1 {
						return nil
					}
					waitFor(ctx)
					ended.Store(int64(time.Since(began)))
					assert.Equal(t, worker.ErrLeaseInDoubt, context.Cause(ctx))
					assert.Equal(t, 1, job.Attempt)
					return ctx.Err()
				})
				require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
				require.Equal(t, c.ends, time.Duration(ended.Load()))
				require.InDelta(t, c.beats, beats.Load(), 1, "the last may be at the same time")
				require.Equal(t, 2, runs)
				released := emitted.of(pawl.EventReleased)
				require.Len(t, released, 1, "it is no failure of the job")
				require.Equal(t, 0, released[0].Job.Attempts)
				require.Zero(t, released[0].Job.Crashes)
				requireDone(t, q, id)
			})
		})
	}
}

// Rule: a worker whose extensions hang asks again at its next beat, and the lease holds.
func TestExtensionThatHangs(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		unanswered := 0
		doubt := doubtful(q, func(ctx context.Context, nth int) error {
			if nth > 1 {
				return nil
			}
			began := time.Now()
			waitFor(ctx)
			assert.Equal(t, 10*time.Second, time.Since(began))
			unanswered++
			return ctx.Err()
		})
		enqueue(t, q, "a")
		r := handleAll(t, doubt, worker.Options{}, func(job *pawl.Job[string]) error {
			<-time.After(10 * time.Minute)
			return nil
		})
		require.Len(t, r.at, 1)
		require.Equal(t, 1, unanswered)
		require.Empty(t, emitted.of(pawl.EventReaped))
	})
}

// Rule: a handler that returns nil after its lease was in doubt has succeeded if the lease holds.
func TestSuccessAfterDoubt(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		doubt := doubtful(q, func(context.Context, int) error { return errBroken })
		id := enqueue(t, q, "a")
		w := newWorker(doubt, worker.Options{})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			waitFor(ctx)
			return nil
		})
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Len(t, emitted.of(pawl.EventSucceeded), 1)
		require.Empty(t, emitted.of(pawl.EventReleased))
		requireDone(t, q, id)
	})
}

// Rule: a job that waits in the worker while its lease is in doubt does not start there. It is
// released.
func TestLeaseInDoubtWhileJobWaits(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		var away atomic.Bool
		doubt := doubtful(q, func(context.Context, int) error {
			if away.Load() {
				return errBroken
			}
			return nil
		})
		book := newLedger(doubt)
		doubt.ack = func(ctx context.Context, l ...*pawl.Lease) error {
			<-time.After(20 * time.Second) // so jobs are fetched ahead, and wait up to 40 s
			return q.Settle(ctx, acksOf(l)...)
		}
		var order []string
		w := newWorker(book, worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			order = append(order, job.Args)
			if job.Args != "long" {
				return nil
			}
			waitFor(ctx)
			<-time.After(5 * time.Second) // while this one holds the slot
			return nil
		})
		enqueue(t, q, "short")
		enqueue(t, q, "long")
		waiting := enqueue(t, q, "waits")
		stop := start(t, w)
		<-time.After(22 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"short", "long"}, order)
		waits := book.lease(waiting)
		require.NotNil(t, waits, "it is fetched ahead")
		away.Store(true)
		<-time.After(time.Until(waits.Expires) - 1)
		synctest.Wait()
		require.Empty(t, emitted.of(pawl.EventReleased))
		<-time.After(1)
		synctest.Wait()
		require.Len(t, emitted.of(pawl.EventReleased), 1)
		require.Equal(t, waiting, emitted.of(pawl.EventReleased)[0].Job.ID)
		require.Equal(t, []string{"short", "long"}, order)
		require.NoError(t, stop())
	})
}

// releases is a queue that counts the jobs of each call that releases some. The first call fails.
type releases struct {
	*faulty
	sizes []int
}

func (r *releases) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if settlements[0].Outcome != pawl.OutcomeRelease {
		return r.faulty.Settle(ctx, settlements...)
	}
	if r.sizes = append(r.sizes, len(settlements)); len(r.sizes) == 1 {
		return errBroken
	}
	return r.faulty.Settle(ctx, settlements...)
}

// Rule: the jobs that wait in the worker while their leases are in doubt are released in one call,
// and so is each further try.
func TestWaitingJobsInDoubtAreReleasedTogether(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		var log logbook
		var away atomic.Bool
		counting := &releases{faulty: doubtful(q, func(context.Context, int) error {
			if away.Load() {
				return errBroken
			}
			return nil
		})}
		book := newLedger(counting)
		counting.ack = func(ctx context.Context, l ...*pawl.Lease) error {
			<-time.After(20 * time.Second) // so jobs are fetched ahead, and wait up to 40 s
			return q.Settle(ctx, acksOf(l)...)
		}
		w := newWorker(book, worker.Options{Concurrency: 1, Logger: log.logger()})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			if job.Args == "long" {
				waitFor(ctx)
				<-time.After(5 * time.Second) // while this one holds the slot
			}
			return nil
		})
		var last pawl.ID
		for _, arg := range []string{"short", "long", "waits", "waits", "waits"} {
			last = enqueue(t, q, arg)
		}
		stop := start(t, w)
		<-time.After(22 * time.Second)
		synctest.Wait()
		waits := book.lease(last)
		require.NotNil(t, waits, "it is fetched ahead")
		away.Store(true)
		<-time.After(time.Until(waits.Expires) + 2*time.Second) // with the second try
		synctest.Wait()
		require.Equal(t, []int{3, 3}, counting.sizes)
		require.Len(t, emitted.of(pawl.EventReleased), 3)
		require.Equal(t, 1, strings.Count(log.String(), "cannot settle jobs yet; trying again: jobs=3"))
		require.NoError(t, stop())
	})
}

// Rule: leases of a queue that one process has to itself are never in doubt. An extension that
// takes long, because another call holds the file, is waited for.
func TestNoDoubtAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(nil)
		defer func() { require.NoError(t, m.Close()) }()
		q := doubtful(m, func(ctx context.Context, _ int) error {
			select {
			case <-time.After(time.Minute): // virtual
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		q.alone = true
		_, err := task.Enqueue(t.Context(), q, "slow")
		require.NoError(t, err)
		w := newWorker(q, worker.Options{})
		worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error {
			select {
			case <-time.After(50 * time.Second): // virtual
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	})
}
