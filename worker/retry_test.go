package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// runs is what a handler saw of the attempts of one job.
type runs struct {
	began    time.Time
	at       []time.Duration // since began
	attempts []int
	last     []bool
}

func (r *runs) note(job *pawl.Job[string]) {
	r.at = append(r.at, time.Since(r.began))
	r.attempts = append(r.attempts, job.Attempt)
	r.last = append(r.last, job.Last)
}

// handleAll runs every job with fn until the queue is finished, one at a time, and
// returns what fn saw.
func handleAll(t *testing.T, q pawl.Queue, opts worker.Options, fn func(*pawl.Job[string]) error) runs {
	t.Helper()
	r := runs{began: time.Now()}
	opts.Concurrency = 1
	w := newWorker(q, opts)
	worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
		r.note(job)
		return fn(job)
	})
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	return r
}

func fails(*pawl.Job[string]) error { return errBroken }

// A job runs max retries + 1 times, each retry after the policy's delay to the
// nanosecond, and is then dead with its whole history.
func TestRetriesUntilExhausted(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a", pawl.MaxRetries(3))
		r := handleAll(t, q, worker.Options{}, fails)
		require.Equal(t, []time.Duration{0, 5 * time.Second, 15 * time.Second, 35 * time.Second}, r.at)
		require.Equal(t, []int{1, 2, 3, 4}, r.attempts)
		require.Equal(t, []bool{false, false, false, true}, r.last)

		requireDead(t, q, id, pawl.ReasonExhausted, 4)
		history := stored(t, q, id).History
		require.Len(t, history, 4)
		for i, f := range history {
			require.Equal(t, i+1, f.Attempt)
			require.Equal(t, errBroken.Error(), f.Error)
			require.Equal(t, r.at[i], f.At.Sub(r.began))
		}
	})
}

// MaxRetries(0) is one attempt, the last.
func TestNoRetries(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a", pawl.MaxRetries(0))
		require.Equal(t, []bool{true}, handleAll(t, q, worker.Options{}, fails).last)
		requireDead(t, q, id, pawl.ReasonExhausted, 1)
	})
}

// A job that succeeds at its last attempt is done.
func TestSuccessAtLast(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a", pawl.MaxRetries(2))
		r := handleAll(t, q, worker.Options{}, func(job *pawl.Job[string]) error {
			if job.Last {
				return nil
			}
			return errBroken
		})
		require.Equal(t, []int{1, 2, 3}, r.attempts)
		requireDone(t, q, id)
	})
}

func TestPermanent(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a")
		r := handleAll(t, q, worker.Options{}, func(*pawl.Job[string]) error {
			return fmt.Errorf("charge card: %w", pawl.Permanent(errBroken))
		})
		require.Len(t, r.at, 1)
		requireDead(t, q, id, pawl.ReasonPermanent, 1)
		require.Equal(t, "charge card: broken", stored(t, q, id).History[0].Error)
	})
}

// RetryAfter goes past the policy and past its cap, never past max retries.
func TestRetryAfter(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a", pawl.MaxRetries(1))
		capped := worker.Options{Policy: plain.Cap(time.Minute)}
		r := handleAll(t, q, capped, func(*pawl.Job[string]) error {
			return pawl.RetryAfter(2*time.Hour, errBroken)
		})
		require.Equal(t, []time.Duration{0, 2 * time.Hour}, r.at)
		requireDead(t, q, id, pawl.ReasonExhausted, 2)
	})
}

// A snoozed job comes back as if it had not run: no attempt, no history, as often
// as it likes.
func TestSnooze(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a", pawl.MaxRetries(0))
		var crashes, failures int
		runs := 0
		r := handleAll(t, q, worker.Options{}, func(job *pawl.Job[string]) error {
			crashes, failures = job.Crashes, job.Failures
			if runs++; runs <= 3 {
				return pawl.Snooze(time.Minute)
			}
			return nil
		})
		require.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute}, r.at)
		require.Equal(t, []int{1, 1, 1, 1}, r.attempts)
		require.Zero(t, crashes)
		require.Zero(t, failures)
		requireDone(t, q, id)
	})
}

// A job's policy goes before its kind's, and that before the worker's.
func TestPolicyPrecedence(t *testing.T) {
	ofJob, ofKind, ofWorker := pawl.Fixed(time.Second), pawl.Fixed(time.Minute), pawl.Fixed(time.Hour)
	for _, c := range []struct {
		rule string
		kind []pawl.Option
		job  []pawl.Option
		want time.Duration
	}{
		{"the worker's where nobody else has one", nil, nil, time.Hour},
		{"the kind's before the worker's", []pawl.Option{pawl.Backoff(ofKind)}, nil, time.Minute},
		{"the job's before the kind's", []pawl.Option{pawl.Backoff(ofKind)}, []pawl.Option{pawl.Backoff(ofJob)}, time.Second},
		{"the job's before the worker's", nil, []pawl.Option{pawl.Backoff(ofJob)}, time.Second},
		{"none at all is a policy too", []pawl.Option{pawl.Backoff(pawl.None())}, nil, 0},
	} {
		t.Run(c.rule, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				kind := pawl.Define[string]("task", append(c.kind, pawl.MaxRetries(1))...)
				_, err := kind.Enqueue(t.Context(), q, "a", c.job...)
				require.NoError(t, err)
				w := newWorker(q, worker.Options{Concurrency: 1, Policy: ofWorker})
				r := runs{began: time.Now()}
				worker.Handle(w, kind, func(_ context.Context, job *pawl.Job[string]) error {
					r.note(job)
					return errBroken
				})
				require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
				require.Equal(t, []time.Duration{0, c.want}, r.at)
			})
		})
	}
}

// stubborn is a policy of the application's own.
type stubborn struct{ asked []pawl.Retry }

func (p *stubborn) Delay(r pawl.Retry) (time.Duration, bool) {
	p.asked = append(p.asked, r)
	return time.Duration(r.Attempt) * time.Second, r.Completed < 3
}

// A custom policy gives delays and gives up, which ends a job that has retries
// left.
func TestCustomPolicyGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a", pawl.MaxRetries(100))
		policy := new(stubborn)
		r := handleAll(t, q, worker.Options{Policy: policy}, fails)
		require.Equal(t, []time.Duration{0, 2 * time.Second, 5 * time.Second}, r.at)
		requireDead(t, q, id, pawl.ReasonPermanent, 3)
		require.Len(t, policy.asked, 3)
		for i, asked := range policy.asked {
			require.Equal(t, i+1, asked.Completed)
			require.Equal(t, i+2, asked.Attempt)
			require.ErrorIs(t, asked.Err, errBroken)
			require.True(t, asked.Random >= 0 && asked.Random < 1)
		}
	})
}

// Rule: only failures in a row exhaust the retries: a job that snoozes as its interval has
// all of them in each interval.
func TestSnoozeAsAnInterval(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a", pawl.MaxRetries(1))
		runs := 0
		handleAll(t, q, worker.Options{}, func(*pawl.Job[string]) error {
			switch runs++; {
			case runs == 20:
				return nil
			case runs%2 == 0:
				return pawl.Snooze(time.Hour)
			}
			return errBroken
		})
		require.Equal(t, 20, runs)
		requireDone(t, q, id)
	})
}

// asked is a policy that counts its askers at one time.
type asked struct{ now, most atomic.Int32 }

func (p *asked) Delay(pawl.Retry) (time.Duration, bool) {
	p.most.Store(max(p.most.Load(), p.now.Add(1)))
	time.Sleep(time.Second) // in virtual time
	p.now.Add(-1)
	return 0, false
}

// Rule: the decision about a failure belongs to the slot, so a worker never decides about more
// failures at a time than it has slots.
func TestDecidesInTheSlot(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		for range 5 {
			enqueue(t, q, "a")
		}
		policy := new(asked)
		handleAll(t, q, worker.Options{Policy: policy}, fails)
		require.EqualValues(t, 1, policy.most.Load())
	})
}
