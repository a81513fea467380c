package inline_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/inline"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

var (
	note    = pawl.Define[string]("note", pawl.MaxRetries(2), pawl.Backoff(pawl.Fixed(time.Hour)))
	errBusy = errors.New("busy")
)

type job = pawl.Job[string]

// setUp returns a queue and a worker of it whose handler of notes is run.
func setUp(t *testing.T, run func(ctx context.Context, j *job) error) (*inline.Queue, *worker.Worker) {
	q := inline.New(&memory.Options{Logger: hclog.NewNullLogger()})
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger(), Concurrency: 1})
	worker.Handle(w, note, run)
	return q, w
}

// enqueue returns the ID of a new job.
func enqueue(t *testing.T, ctx context.Context, q pawl.Enqueuer, text string, opts ...pawl.Option) pawl.ID {
	done, err := note.Enqueue(ctx, q, text, opts...)
	require.NoError(t, err)
	return done.ID
}

// count returns how many jobs are in a state.
func count(t *testing.T, q *inline.Queue, state pawl.State) (n int) {
	for _, err := range q.Jobs(context.Background(), pawl.Filter{State: state}) {
		require.NoError(t, err)
		n++
	}
	return n
}

type key struct{}

// Rule: Enqueue returns after the job has run, with the values of its context.
func TestEnqueueRuns(t *testing.T) {
	var ran []string
	q, _ := setUp(t, func(ctx context.Context, j *job) error {
		ran = append(ran, j.Args+ctx.Value(key{}).(string))
		return nil
	})
	id := enqueue(t, context.WithValue(t.Context(), key{}, "!"), q, "a")
	require.Equal(t, []string{"a!"}, ran)
	_, err := q.Job(t.Context(), id)
	require.ErrorIs(t, err, pawl.ErrNotFound)
}

// Rule: the jobs of a batch run in their order.
func TestBatchRunsInOrder(t *testing.T) {
	var ran []string
	q, _ := setUp(t, func(_ context.Context, j *job) error { ran = append(ran, j.Args); return nil })
	var batch []*pawl.Envelope
	for _, text := range []string{"a", "b", "c"} {
		e, err := note.Envelope(text)
		require.NoError(t, err)
		batch = append(batch, e)
	}
	done, err := q.Enqueue(t.Context(), batch...)
	require.NoError(t, err)
	require.Len(t, done, 3)
	require.Equal(t, []string{"a", "b", "c"}, ran)
}

// Rule: nack: retries by the policy come without waiting, and with the attempts that any queue
// counts.
func TestRetriesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		q, _ := setUp(t, func(_ context.Context, j *job) error {
			attempts = append(attempts, j.Attempt)
			if !j.LastAttempt() {
				return errBusy
			}
			return nil
		})
		began := time.Now()
		enqueue(t, t.Context(), q, "a")
		require.Equal(t, []int{1, 2, 3}, attempts)
		require.Zero(t, time.Since(began))
		require.Zero(t, count(t, q, pawl.Dead))
	})
}

// Rule: abandon: a job whose retries are exhausted, or whose error is permanent, is dead when
// Enqueue returns nil, and the caller finds it with its reason and its errors.
func TestDeadJobIsVisible(t *testing.T) {
	result := errBusy
	q, w := setUp(t, func(context.Context, *job) error { return result })
	e, err := q.Job(t.Context(), enqueue(t, t.Context(), q, "a"))
	require.NoError(t, err)
	require.Equal(t, pawl.Dead, e.State)
	require.Equal(t, pawl.ReasonExhausted, e.Death.Reason)
	require.Equal(t, 3, e.Attempts)
	require.Len(t, e.History, 3)
	require.Equal(t, "busy", e.LastError())

	result = pawl.Permanent(errBusy)
	permanent, err := q.Job(t.Context(), enqueue(t, t.Context(), q, "b"))
	require.NoError(t, err)
	require.Equal(t, pawl.ReasonPermanent, permanent.Death.Reason)
	require.Equal(t, 1, permanent.Attempts)

	result = nil
	require.NoError(t, q.Retry(t.Context(), e.ID, false))
	require.NoError(t, w.ProcessOnce(t.Context()))
	require.Equal(t, 1, count(t, q, pawl.Dead))
}

// Rule: a job with a delay, and one that snoozes, waits for its time, and Drain runs it then.
func TestDelaysAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []time.Duration
		began := time.Now()
		q, w := setUp(t, func(_ context.Context, j *job) error {
			ran = append(ran, time.Since(began))
			if j.Args == "snoozes" && len(ran) == 1 {
				return pawl.Snooze(time.Hour)
			}
			return nil
		})
		enqueue(t, t.Context(), q, "snoozes")
		enqueue(t, t.Context(), q, "waits", pawl.Delay(2*time.Hour))
		require.Equal(t, []time.Duration{0}, ran)
		require.Equal(t, 2, count(t, q, pawl.Delayed))
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, []time.Duration{0, time.Hour, 2 * time.Hour}, ran)
	})
}

// Rule: a job that a handler enqueues has run when the handler's Enqueue returns, also when the
// handler gives it another context, and when Run has taken the only slot.
func TestNestedEnqueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		var q *inline.Queue
		q, w := setUp(t, func(ctx context.Context, j *job) error {
			if len(j.Args) < 3 {
				enqueue(t, ctx, q, j.Args+"i")
				enqueue(t, context.Background(), q, j.Args+"ii")
			}
			ran = append(ran, j.Args)
			return nil
		})
		want := []string{"iii", "iiii", "ii", "iii", "i"}
		enqueue(t, t.Context(), q, "i")
		require.Equal(t, want, ran)

		ran = nil
		enqueue(t, t.Context(), q, "i", pawl.Delay(time.Hour))
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- w.Run(ctx) }()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, want, ran)
		enqueue(t, t.Context(), q, "i")
		require.Equal(t, slices.Concat(want, want), ran)
		stop()
		require.NoError(t, <-stopped)
	})
}

// Rule: while an Enqueue runs jobs, a worker that runs beside it gets none; it gets them later.
func TestRunWaitsForEnqueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type start struct {
			text string
			at   time.Duration
			by   any // nil for Run
		}
		began, ran := time.Now(), make(chan start, 2)
		q, w := setUp(t, func(ctx context.Context, j *job) error {
			ran <- start{j.Args, time.Since(began), ctx.Value(key{})}
			if j.Args == "long" {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		enqueue(t, t.Context(), q, "delayed", pawl.Delay(time.Second))
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- w.Run(ctx) }()
		synctest.Wait()
		enqueue(t, context.WithValue(t.Context(), key{}, "Enqueue"), q, "long")
		require.Equal(t, start{"long", 0, "Enqueue"}, <-ran)
		require.Equal(t, start{"delayed", 10 * time.Second, nil}, <-ran)
		stop()
		require.NoError(t, <-stopped)
	})
}

// Rule: calls that overlap may run the jobs of each other, and each returns after its own.
func TestEnqueuesOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := make(map[string]time.Duration)
		var mu sync.Mutex
		began := time.Now()
		q, _ := setUp(t, func(_ context.Context, j *job) error {
			time.Sleep(2 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			ran[j.Args] = time.Since(began)
			return nil
		})
		other := make(chan time.Duration)
		go func() {
			time.Sleep(time.Second)
			_, err := note.Enqueue(t.Context(), q, "c") // runs b before
			if err == nil {
				other <- time.Since(began)
			}
		}()
		a, err := note.Envelope("a")
		require.NoError(t, err)
		b, err := note.Envelope("b")
		require.NoError(t, err)
		_, err = q.Enqueue(t.Context(), a, b)
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Equal(t, 5*time.Second, <-other)
		require.Equal(t, map[string]time.Duration{"a": 2 * time.Second, "b": 3 * time.Second, "c": 5 * time.Second}, ran)
	})
}

// Rule: a job that no worker takes stays ready, and the log says so.
func TestJobWithoutWorker(t *testing.T) {
	var log bytes.Buffer
	q := inline.New(&memory.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	defer q.Close()
	enqueue(t, t.Context(), q, "a")
	require.Equal(t, 1, count(t, q, pawl.Ready))
	require.Contains(t, log.String(), "no worker takes a job")

	w := worker.New(q, &worker.Options{Queues: []string{"other"}})
	worker.Handle(w, note, func(context.Context, *job) error { return nil })
	enqueue(t, t.Context(), q, "b")
	require.Equal(t, 2, count(t, q, pawl.Ready))
	enqueue(t, t.Context(), q, "c", pawl.OnQueue("other"))
	require.Equal(t, 2, count(t, q, pawl.Ready))
}

// Rule: the error of a worker that was set up wrongly is in the log, and the job stays ready.
func TestWorkerThatCannotStart(t *testing.T) {
	var log bytes.Buffer
	q := inline.New(&memory.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	defer q.Close()
	w := worker.New(q, &worker.Options{Concurrency: -1})
	worker.Handle(w, note, func(context.Context, *job) error { return nil })
	enqueue(t, t.Context(), q, "a")
	require.Equal(t, 1, count(t, q, pawl.Ready))
	require.Contains(t, log.String(), "Concurrency")
}

// Rule: when the context of Enqueue ends, the attempt is interrupted and does not count. The job stays
// ready.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := setUp(t, func(ctx context.Context, _ *job) error {
			<-ctx.Done()
			return ctx.Err()
		})
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		e, err := q.Job(t.Context(), enqueue(t, ctx, q, "a"))
		require.NoError(t, err)
		require.Equal(t, pawl.Ready, e.State)
		require.Zero(t, e.Attempts)
	})
}

// Rule: Close ends a fetch that waits for an Enqueue, even one by a handler of that Enqueue.
func TestCloseEndsAWaitingFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *inline.Queue
		var err error
		q, _ = setUp(t, func(context.Context, *job) error {
			fetched := make(chan error)
			go func() {
				_, err := q.Fetch(context.Background(), pawl.Request{Kinds: []string{"other"}, Max: 1})
				fetched <- err
			}()
			synctest.Wait()
			require.NoError(t, q.Close())
			err = <-fetched
			return nil
		})
		enqueue(t, t.Context(), q, "a")
		require.ErrorIs(t, err, pawl.ErrClosed)
		require.NoError(t, q.Close(), "it is closed already")
	})
}

// Rule: a Close ends an Enqueue that waits for a job that somebody else runs: nobody can settle it any more.
func TestCloseEndsAnEnqueueThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := setUp(t, func(context.Context, *job) error { return nil })
		leased := make(chan []*pawl.Lease, 1)
		go func() { // it gets the job before the Enqueue runs it
			leases, _ := q.Queue.Fetch(t.Context(), pawl.Request{Max: 1})
			leased <- leases
		}()
		synctest.Wait()
		enqueued := make(chan struct{})
		go func() {
			enqueue(t, t.Context(), q, "a")
			close(enqueued)
		}()
		synctest.Wait()
		require.Len(t, <-leased, 1)
		require.NoError(t, q.Close())
		<-enqueued
	})
}

// Rule: what the queue cannot do is refused by name.
func TestAbilities(t *testing.T) {
	q, _ := setUp(t, func(context.Context, *job) error { return nil })
	for _, a := range []pawl.Ability{pawl.Synced, pawl.Shared} {
		err := pawl.Require(q, a)
		require.ErrorIs(t, err, pawl.ErrUnsupported)
		require.ErrorContains(t, err, a.String())
	}
	require.NoError(t, pawl.Require(q, pawl.UniqueKeys|pawl.IdempotencyKeys|pawl.Priorities|pawl.Deadlines|pawl.Retention|pawl.RetryShares))
}

// Rule: package engine opens the queue by its scheme alone.
func TestOpen(t *testing.T) {
	q, err := engine.Open(t.Context(), "inline:")
	require.NoError(t, err)
	require.IsType(t, (*inline.Queue)(nil), q)
	require.NoError(t, q.Close())
	_, err = engine.Open(t.Context(), "inline:jobs")
	require.ErrorIs(t, err, pawl.ErrInvalid)
}
