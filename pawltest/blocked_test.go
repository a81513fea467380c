package pawltest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/pawltest"
	"github.com/gopawl/pawl/worker"
)

// limited returns a queue with these limits, and a worker whose handler returns what answer returns.
func limited(t testing.TB, l pawl.Limits, answer func(n int) error) (*pawltest.Queue, *worker.Worker) {
	q := pawltest.New(t, &memory.Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: l}, Logger: hclog.NewNullLogger()})
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	worker.Handle(w, count, func(_ context.Context, job *pawl.Job[int]) error { return answer(job.Args) })
	return q, w
}

// enqueueCounts enqueues the numbers below n.
func enqueueCounts(t testing.TB, q pawl.Enqueuer, n int, opts ...pawl.Option) (ids []pawl.ID) {
	t.Helper()
	for i := range n {
		job, err := count.Enqueue(t.Context(), q, i, opts...)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, job.ID)
	}
	return ids
}

func succeed(int) error { return nil }

// Rule: Drain moves the clock to the time at which a rate lets the next job start.
func TestDrainSkipsRates(t *testing.T) {
	for name, l := range map[string]pawl.Limits{
		"of the queue": {Rate: pawl.Rate{Starts: 1, Per: time.Hour}},
		"of a key":     {RatePerKey: pawl.Rate{Starts: 1, Per: time.Hour}},
		"in order":     {RatePerKey: pawl.Rate{Starts: 1, Per: time.Hour}, InOrder: pawl.OrderHold},
	} {
		t.Run(name, func(t *testing.T) {
			q, w := limited(t, l, succeed)
			begun := q.Now()
			enqueueCounts(t, q, 4, pawl.Key("a"))
			equal(t, 4, len(pawltest.Drain(t, q, w)))
			equal(t, 3*time.Hour, q.Now().Sub(begun).Truncate(time.Hour))
		})
	}
}

// Rule: Drain moves the clock to a retry that comes before a rate lets another job start.
func TestDrainSkipsDelaysBesideRates(t *testing.T) {
	failed := false
	q, w := limited(t, pawl.Limits{InOrder: pawl.OrderContinue}, func(n int) error {
		if n == 0 && !failed {
			failed = true
			return pawl.RetryAfter(time.Hour, errBusy)
		}
		return nil
	})
	enqueueCounts(t, q, 2, pawl.Key("a"))
	got := pawltest.Drain(t, q, w)
	equal(t, 3, len(got))
	equal(t, pawl.EventRetried, got[0].Type)
	equal(t, 0, countOf(t, q, pawl.Ready))
}

// Rule: Drain moves the clock to the end of a rest.
func TestDrainSkipsRests(t *testing.T) {
	for _, rest := range []pawl.Rest{pawl.ThisKey, pawl.ThisQueue} {
		throttled := false
		q, w := limited(t, pawl.Limits{RunningPerKey: 1}, func(int) error {
			if !throttled {
				throttled = true
				return pawl.Throttle(time.Hour, rest)
			}
			return nil
		})
		enqueueCounts(t, q, 2, pawl.Key("a"))
		got := pawltest.Drain(t, q, w)
		equal(t, 3, len(got))
		equal(t, pawl.EventReleased, got[0].Type)
	}
}

// Rule: Drain fails a test whose jobs throttle without end.
func TestDrainGivesUpOnRests(t *testing.T) {
	q, w := limited(t, pawl.Limits{}, func(int) error { return pawl.Throttle(time.Minute, pawl.ThisQueue) })
	enqueueCounts(t, q, 1)
	message := failure(t, func(t testing.TB) { pawltest.Drain(t, q, w) })
	equal(t, true, strings.Contains(message, `these jobs still wait:`))
	equal(t, true, strings.Contains(message, `rests until`))
}

// Rule: Drain returns when all jobs that are left wait for a dead job, and these stay.
func TestDrainLeavesJobsBehindADeadOne(t *testing.T) {
	fail := func(int) error { return pawl.Permanent(errBusy) }
	t.Run("that holds the key", func(t *testing.T) {
		q, w := limited(t, pawl.Limits{InOrder: pawl.OrderHold}, fail)
		enqueueCounts(t, q, 3, pawl.Key("a"))
		equal(t, 1, len(pawltest.Drain(t, q, w)))
		equal(t, 2, countOf(t, q, pawl.Ready))
	})
	t.Run("that has to succeed", func(t *testing.T) {
		q, w := limited(t, pawl.Limits{}, fail)
		first := enqueueCounts(t, q, 1)
		second := enqueueCounts(t, q, 1, pawl.After(first...))
		enqueueCounts(t, q, 1, pawl.After(second...))
		equal(t, 1, len(pawltest.Drain(t, q, w)))
		equal(t, 2, countOf(t, q, pawl.Ready))
	})
	t.Run("another worker", func(t *testing.T) {
		q, w := limited(t, pawl.Limits{InOrder: pawl.OrderHold}, fail)
		enqueueCounts(t, q, 2, pawl.Key("a"))
		pawltest.Drain(t, q, w)
		enqueue(t, q, "ada")
		equal(t, 1, len(pawltest.Drain(t, q, answering(q))))
	})
}

// Rule: while a job waits for the end of a pause, Drain waits too, and does not move the clock. After the pause it goes on,
// or returns if the job waits for a dead job as well.
func TestDrainWaitsForTheEndOfAPause(t *testing.T) {
	for name, hold := range map[string]pawl.KeyOrder{"jobs that can run": 0, "jobs behind a dead one": pawl.OrderHold} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer, ran, stay, moved := succeed, 3, 0, time.Hour
				if hold != 0 {
					answer, ran, stay, moved = func(int) error { return pawl.Permanent(errBusy) }, 0, 2, 0
				}
				q, w := limited(t, pawl.Limits{InOrder: hold}, answer)
				begun := q.Now()
				if hold != 0 {
					enqueueCounts(t, q, 1, pawl.Key("a"))
					pawltest.Drain(t, q, w)
				} else {
					enqueueCounts(t, q, 1, pawl.At(begun.Add(time.Hour)))
				}
				enqueueCounts(t, q, 2, pawl.Key("a"))
				check(t, q.Pause(t.Context(), pawl.DefaultQueue))
				ended := make(chan int)
				go func() {
					defer close(ended) // also if Drain fails the test
					ended <- len(pawltest.Drain(t, q, w))
				}()
				synctest.Wait()
				equal(t, begun, q.Now())
				check(t, q.Resume(t.Context(), pawl.DefaultQueue))
				equal(t, ran, <-ended)
				equal(t, stay, countOf(t, q, pawl.Ready))
				equal(t, moved, q.Now().Sub(begun))
			})
		})
	}
}

// countOf counts the jobs in a state.
func countOf(t testing.TB, q *pawltest.Queue, state pawl.State) (n int) {
	t.Helper()
	for _, err := range q.Jobs(t.Context(), pawl.Filter{State: state}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
