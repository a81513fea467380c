package pawltest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/pawltest"
	"github.com/gopawl/pawl/worker"
)

// Rule: RunOne returns the outcome of the job that it ran.
func TestRunOneSaysWhatBecameOfTheJob(t *testing.T) {
	permanent := pawl.Permanent(errBusy)
	for _, c := range []struct {
		rule   string
		answer error
		opts   []pawl.Option
		want   pawltest.Outcome
		text   string
	}{
		{"nil: succeeded", nil, nil, pawltest.Outcome{Type: pawl.EventSucceeded},
			`succeeded`},
		{"an error: retried", errBusy, nil, pawltest.Outcome{Type: pawl.EventRetried, Delay: time.Hour, Cause: errBusy.Error()},
			`retried in 1h0m0s: mailbox is busy`},
		{"the last retry: dead", errBusy, []pawl.Option{pawl.MaxRetries(0)},
			pawltest.Outcome{Type: pawl.EventDied, Reason: pawl.ReasonExhausted, Cause: errBusy.Error()},
			`died (exhausted): mailbox is busy`},
		{"permanent: dead", permanent, nil, pawltest.Outcome{Type: pawl.EventDied, Reason: pawl.ReasonPermanent, Cause: errBusy.Error()},
			`died (permanent): mailbox is busy`},
		{"a snooze: snoozed", pawl.Snooze(time.Minute), nil, pawltest.Outcome{Type: pawl.EventSnoozed, Delay: time.Minute},
			`snoozed for 1m0s`},
		{"a retry behind the deadline: dead", errBusy, []pawl.Option{pawl.Deadline(time.Now().Add(-time.Hour))}, pawltest.Outcome{}, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			q := pawltest.New(t, nil)
			id := enqueue(t, q, "ada", c.opts...)
			enqueue(t, q, "not yet", pawl.Delay(time.Hour))
			got := pawltest.RunOne(t, q, answering(q, c.answer))
			if c.text == "" {
				equal(t, "no job was ready", got.String())
				return
			}
			equal(t, id, got.Job.ID)
			equal(t, true, strings.HasPrefix(got.String(), `mail.send {"To":"ada",`))
			equal(t, true, strings.HasSuffix(got.String(), "}: "+c.text))
			got.Job = nil
			if got != c.want {
				t.Fatalf("want %+v\n got %+v", c.want, got)
			}
		})
	}
}

// Rule: a job whose kind has no handler stays ready, and is no outcome.
func TestRunOneLeavesUnknownKinds(t *testing.T) {
	q := pawltest.New(t, nil)
	w := answering(q)
	equal(t, pawl.EventType(""), pawltest.RunOne(t, q, w).Type)
	enqueued, err := count.Enqueue(t.Context(), q, 1)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, pawl.EventType(""), pawltest.RunOne(t, q, w).Type)
	job, err := q.Job(t.Context(), enqueued.ID)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, pawl.Ready, job.State)
}

// Rule: a job whose idempotency key is done is skipped, and reported if nothing else ran.
func TestRunOneReportsSkips(t *testing.T) {
	q := pawltest.New(t, nil)
	w := answering(q)
	enqueue(t, q, "ada", pawl.IdempotencyKey("k"))
	enqueue(t, q, "ada", pawl.IdempotencyKey("k"))
	equal(t, pawl.EventSucceeded, pawltest.RunOne(t, q, w).Type)
	equal(t, pawl.EventSkipped, pawltest.RunOne(t, q, w).Type)
	equal(t, pawl.EventType(""), pawltest.RunOne(t, q, w).Type)
}

// Rule: a job that fails past its deadline is dead, which is the final outcome.
func TestRunOneReportsTheLastOutcome(t *testing.T) {
	q := pawltest.New(t, nil)
	enqueue(t, q, "ada", pawl.Deadline(q.Now().Add(time.Minute)))
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	worker.Handle(w, sendMail, func(context.Context, *pawl.Job[mail]) error {
		q.Advance(2 * time.Minute)
		return errBusy
	})
	got := pawltest.RunOne(t, q, w)
	equal(t, pawl.EventDied, got.Type)
	equal(t, pawl.ReasonDeadline, got.Reason)
	equal(t, 1, len(got.Job.History))
}

// Rule: an outcome does not change with the job.
func TestOutcomesDoNotChange(t *testing.T) {
	q := pawltest.New(t, nil)
	w := answering(q, errBusy, errBusy, errBusy)
	enqueue(t, q, "ada")
	first := pawltest.RunOne(t, q, w)
	pawltest.Drain(t, q, w)
	equal(t, 1, len(first.Job.History))
	equal(t, pawl.Delayed, first.Job.State)
	equal(t, 1, first.Job.Attempts)
}

// Rule: a worker that cannot run, or that works on another queue, is reported as a mistake in the
// test.
func TestRunOneRefusesWorkersOfOtherQueues(t *testing.T) {
	q, other := pawltest.New(t, nil), pawltest.New(t, nil)
	enqueue(t, other, "ada")
	equal(t, "pawltest: the worker ran a job of another queue than the one given",
		failure(t, func(t testing.TB) { pawltest.RunOne(t, q, answering(other)) }))
	idle := worker.New(q, nil)
	for _, fn := range []func(t testing.TB){
		func(t testing.TB) { pawltest.RunOne(t, q, idle) },
		func(t testing.TB) { pawltest.Drain(t, q, idle) },
	} {
		equal(t, true, strings.Contains(failure(t, fn), "start worker: invalid worker: it has no handler"))
	}
}

// Rule: Drain runs every job to its end, including retries and delayed jobs, without waiting and in
// clock order, and returns each outcome.
func TestDrainSkipsDelays(t *testing.T) {
	drain := func(t *testing.T) {
		began := time.Now()
		q := pawltest.New(t, nil)
		w := answering(q, errBusy, nil, pawl.Snooze(100*time.Hour), errBusy, nil)
		enqueue(t, q, "ada")
		enqueue(t, q, "later", pawl.Delay(30*time.Minute))
		enqueue(t, q, "too late", pawl.Delay(48*time.Hour), pawl.Deadline(q.Now().Add(24*time.Hour)))
		got := pawltest.Drain(t, q, w)
		equal(t, []pawl.EventType{
			pawl.EventRetried,   // ada, until 1h
			pawl.EventSucceeded, // later, at 30m
			pawl.EventSnoozed,   // ada, until 101h
			pawl.EventDied,      // too late, seen at 48h
			pawl.EventRetried,   // ada, until 102h
			pawl.EventSucceeded,
		}, types(got))
		equal(t, pawl.ReasonDeadline, got[3].Reason)
		equal(t, 2, got[5].Job.Attempts) // counted anew after the snooze
		if moved := q.Now().Sub(began); moved < 102*time.Hour || moved > 103*time.Hour {
			t.Fatalf("the clock was moved by %v", moved)
		}
		if waited := time.Since(began); waited > time.Hour/2 {
			t.Fatalf("it waited for %v", waited)
		}
		equal(t, 0, len(pawltest.Drain(t, q, w)))
	}
	t.Run("in an ordinary test", drain)
	t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, drain) })
}

// Rule: jobs that a handler enqueues are run too.
func TestDrainRunsWhatHandlersEnqueue(t *testing.T) {
	q := pawltest.New(t, nil)
	w := answering(q)
	worker.Handle(w, count, func(ctx context.Context, job *pawl.Job[int]) error {
		if job.Args == 0 {
			return nil
		}
		_, err := count.Enqueue(ctx, q, job.Args-1, pawl.Delay(time.Hour))
		return err
	})
	if _, err := count.Enqueue(t.Context(), q, 3); err != nil {
		t.Fatal(err)
	}
	equal(t, 4, len(pawltest.Drain(t, q, w)))
	equal(t, []int{3, 2, 1, 0}, pawltest.Enqueued(t, q, count))
}

// Rule: a job that never ends fails the test, which names the job.
func TestDrainGivesUp(t *testing.T) {
	q := pawltest.New(t, nil)
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	worker.Handle(w, count, func(context.Context, *pawl.Job[int]) error { return pawl.Snooze(time.Minute) })
	if _, err := count.Enqueue(t.Context(), q, 3); err != nil {
		t.Fatal(err)
	}
	message := failure(t, func(t testing.TB) { pawltest.Drain(t, q, w) })
	equal(t, true, strings.HasPrefix(message, "pawltest: the queue does not become empty; after 10000 moves of its clock these jobs still wait:\n  count 3, until "))
}

// Rule: a job that is due later than the clock can be moved does not hang the test.
func TestDrainGivesUpOnTheFarFuture(t *testing.T) {
	q := pawltest.New(t, nil)
	enqueue(t, q, "ada", pawl.At(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)))
	message := failure(t, func(t testing.TB) { pawltest.Drain(t, q, answering(q)) })
	equal(t, true, strings.Contains(message, "until 9999-01-01"))
}
