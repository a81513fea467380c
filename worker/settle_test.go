package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// An acknowledgement holds no slot: with a single one and acks that do not come
// back, handlers start until MaxUnsettled jobs are finished and not settled. Then
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
			return q.Settle(ctx, acksOf(l)...)
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

// finishing is a worker whose jobs finish while the ack of the first of them is under way,
// which takes a second. The ack of a job with the name "late" takes a minute.
type finishing struct {
	q       *memory.Queue
	emitted *events
	log     logbook
	began   time.Time
	runs    atomic.Int32

	mu    sync.Mutex
	calls []string                   // the jobs of each ack, sorted
	asked map[string][]time.Duration // when each job was to be acked
}

// finish runs a first job and those that are named, and has their acks made by ack.
func (f *finishing) finish(t *testing.T, ack func(ctx context.Context, leases ...*pawl.Lease) error, jobs ...string) {
	t.Helper()
	f.began, f.asked = time.Now(), make(map[string][]time.Duration)
	w := newWorker(&faulty{Queue: f.q, ack: func(ctx context.Context, leases ...*pawl.Lease) error {
		if f.note(leases) == 1 {
			<-time.After(time.Second)
			return f.q.Settle(ctx, acksOf(leases)...)
		}
		return ack(ctx, leases...)
	}}, worker.Options{Concurrency: len(jobs) + 1, Logger: f.log.logger()})
	worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
		f.runs.Add(1)
		switch job.Args {
		case "first":
		case "late":
			<-time.After(time.Minute)
		default:
			<-time.After(time.Millisecond)
		}
		return nil
	})
	jobs = append([]string{"first"}, jobs...)
	for _, job := range jobs {
		enqueue(t, f.q, job)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour) // of those who try for ever
	defer cancel()
	require.NoError(t, w.Drain(ctx, pawl.WaitFinished))
	require.EqualValues(t, len(jobs), f.runs.Load(), "no job runs twice")
	var acked []string
	for _, e := range f.emitted.of(pawl.EventSucceeded) {
		acked = append(acked, nameOf(e.Job))
	}
	require.ElementsMatch(t, jobs, acked, "each job is acked once")
	require.Equal(t, "first", f.calls[0])
}

// note notes an ack, and returns its number, from 1 on.
func (f *finishing) note(leases []*pawl.Lease) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var jobs []string
	for _, l := range leases {
		name := nameOf(l.Envelope)
		jobs = append(jobs, name)
		f.asked[name] = append(f.asked[name], time.Since(f.began))
	}
	slices.Sort(jobs)
	f.calls = append(f.calls, strings.Join(jobs, " "))
	return len(f.calls)
}

// nameOf is what a job of kind task was enqueued with.
func nameOf(e *pawl.Envelope) string {
	job, err := task.Job(e)
	if err != nil {
		return err.Error()
	}
	return job.Args
}

// Jobs that finish while an ack is under way are acked together by the next ack.
func TestAcksAreBatched(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		f := &finishing{q: q, emitted: emitted}
		f.finish(t, acker(q), "a", "b", "c", "d")
		require.Equal(t, []string{"first", "a b c d"}, f.calls)
		require.Empty(t, f.log.String())
	})
}

// settleCalls is a queue that notes what each Settle has, and whose first takes a second.
type settleCalls struct {
	pawl.Queue
	mu    sync.Mutex
	calls []map[pawl.Outcome]int
}

func (q *settleCalls) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	call := make(map[pawl.Outcome]int)
	for _, s := range settlements {
		call[s.Outcome]++
	}
	q.mu.Lock()
	q.calls = append(q.calls, call)
	first := len(q.calls) == 1
	q.mu.Unlock()
	if first {
		<-time.After(time.Second)
	}
	return q.Queue.Settle(ctx, settlements...)
}

// Rule: attempts that end while a settle is under way are settled together by the next settle,
// whether they failed or not.
func TestFailuresBatch(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		calls := &settleCalls{Queue: q}
		w := newWorker(calls, worker.Options{Concurrency: 6})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			switch job.Args {
			case "first":
				return nil
			case "retry":
				<-time.After(time.Millisecond)
				return pawl.RetryAfter(time.Hour, errBroken)
			case "permanent":
				<-time.After(time.Millisecond)
				return pawl.Permanent(errBroken)
			case "snooze":
				<-time.After(time.Millisecond)
				return pawl.Snooze(time.Hour)
			}
			<-time.After(time.Millisecond)
			return nil
		})
		for _, job := range []string{"first", "retry", "retry", "permanent", "snooze", "done"} {
			enqueue(t, q, job)
		}
		require.NoError(t, w.Drain(t.Context(), pawl.WaitDrained))
		require.Equal(t, []map[pawl.Outcome]int{
			{pawl.OutcomeAck: 1},
			{pawl.OutcomeNack: 2, pawl.OutcomeAbandon: 1, pawl.OutcomeSnooze: 1, pawl.OutcomeAck: 1},
		}, calls.calls)
	})
}

// Jobs whose common ack fails are acked one by one, each until its ack succeeds. Jobs that
// finish in the meantime do not wait for them.
func TestAcksThatFailAreTriedOneByOne(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		f := &finishing{q: q, emitted: emitted}
		f.finish(t, func(ctx context.Context, leases ...*pawl.Lease) error {
			if time.Since(f.began) < 10*time.Minute && nameOf(leases[0].Envelope) != "late" {
				return fmt.Errorf("ack: %w", bolt.ErrDisk)
			}
			return q.Settle(ctx, acksOf(leases)...)
		}, "a", "b", "c", "d", "late")
		require.Equal(t, "a b c d", f.calls[1])
		for _, call := range f.calls[2:] {
			require.NotContains(t, call, " ", "alone")
		}
		retries := 0
		for _, name := range []string{"a", "b", "c", "d"} {
			asked := f.asked[name]
			require.Equal(t, []time.Duration{time.Second, time.Second}, asked[:2], "alone at once")
			require.GreaterOrEqual(t, asked[len(asked)-1], 10*time.Minute)
			require.Less(t, asked[len(asked)-2], 10*time.Minute, "and no more once it went through")
			retries += len(asked) - 2
		}
		require.Equal(t, []time.Duration{time.Minute}, f.asked["late"])
		require.Equal(t, retries, strings.Count(f.log.String(), "cannot settle a job yet; trying again"))
	})
}

// If an ack of several jobs names some as not acked, each of these is acked alone, until
// its ack succeeds or says that the lease is lost. The others are settled, and not acked
// again.
func TestAcksThatFailForSome(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		f := &finishing{q: q, emitted: emitted}
		f.finish(t, func(ctx context.Context, leases ...*pawl.Lease) error {
			if time.Since(f.began) >= 10*time.Minute || len(leases) == 1 && nameOf(leases[0].Envelope) != "full" {
				return q.Settle(ctx, acksOf(leases)...)
			}
			errs := make([]error, len(leases))
			for i, l := range leases {
				switch nameOf(l.Envelope) {
				case "full":
					errs[i] = bolt.ErrDisk
				case "lost": // another worker was faster
					assert.NoError(t, q.Settle(ctx, l.Ack()))
					fallthrough
				default:
					errs[i] = q.Settle(ctx, l.Ack())
				}
			}
			return fmt.Errorf("acks: %w", driver.SettleErrors(acksOf(leases), errs))
		}, "a", "b", "full", "lost")
		require.Equal(t, "a b full lost", f.calls[1])
		require.Len(t, f.asked["a"], 1)
		require.Len(t, f.asked["b"], 1)
		require.Equal(t, []time.Duration{time.Second, time.Second}, f.asked["lost"], "once more, alone")
		full := f.asked["full"]
		require.GreaterOrEqual(t, full[len(full)-1], 10*time.Minute)
		require.Equal(t, len(full)-2, strings.Count(f.log.String(), "cannot settle a job yet; trying again"))
		require.Equal(t, 1, strings.Count(f.log.String(), "lease was lost before the job settled"))
		require.NotContains(t, f.log.String(), "[ERROR]")
	})
}

// The pauses between tries do not count as the time of a commit: a disk that was full does
// not make a worker with long handlers fetch ahead.
func TestRetriedSettleFetchesNotAhead(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		book := newLedger(q)
		began := time.Now()
		full := &faulty{Queue: book, ack: func(ctx context.Context, l ...*pawl.Lease) error {
			if time.Since(began) < time.Minute {
				return bolt.ErrDisk
			}
			return q.Settle(ctx, acksOf(l)...)
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

// A settle that never succeeds ends with the worker: the job is given up, with a line in
// the log, and Run returns.
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
		require.Equal(t, 8500*time.Millisecond, time.Since(began), "Drain, StopGrace and 1.5 s")
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

// Errors after which no later call can succeed end a worker immediately; others do not.
func TestFetchFails(t *testing.T) {
	lacks := &pawl.InvalidError{Field: "RetryShare", Reason: "the queue has none", Lacks: pawl.RetryShares}
	for _, fatal := range []error{pawl.ErrClosed, pawl.ErrPoisoned, errors.Join(pawl.ErrUnknownOutcome, pawl.ErrPoisoned), lacks} {
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
	for _, other := range []error{bolt.ErrDisk, fmt.Errorf("dial: %w", syscall.ENOSYS)} { // which matches ErrUnsupported
		t.Run("any other is tried again: "+other.Error(), func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				var tries []time.Time
				flaky := &faulty{Queue: q, fetch: func(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
					if tries = append(tries, time.Now()); len(tries) <= 5 {
						return nil, other
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
	}
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
