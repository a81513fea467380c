package pawltest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/pawltest"
	"github.com/gopawl/pawl/worker"
)

var (
	_ pawl.Queue = (*pawltest.Queue)(nil)
	_ dlq.Store  = (*pawltest.Queue)(nil)
)

// Rule: everything due by the moved clock has happened when Advance returns.
func TestAdvanceMakesDue(t *testing.T) {
	advance := func(t *testing.T) {
		q := pawltest.New(t, nil)
		w := answering(q)
		enqueue(t, q, "ada", pawl.Delay(time.Hour))
		mortal := enqueue(t, q, "grace", pawl.Delay(48*time.Hour), pawl.Deadline(q.Now().Add(24*time.Hour)))
		q.Advance(59 * time.Minute)
		equal(t, "no job was ready", pawltest.RunOne(t, q, w).String())
		q.Advance(time.Minute)
		equal(t, pawl.EventSucceeded, pawltest.RunOne(t, q, w).Type)
		q.Advance(23 * time.Hour)
		e, err := dlq.Inspect(t.Context(), q, mortal)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, pawl.ReasonDeadline, e.Death.Reason)
	}
	t.Run("in an ordinary test", advance)
	t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, advance) })
}

// Rule: a waiting worker gets jobs that become due, without another call.
func TestAdvanceWakesWorkers(t *testing.T) {
	q := pawltest.New(t, nil)
	ran, stopped := make(chan string), make(chan error)
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	worker.Handle(w, sendMail, func(_ context.Context, job *pawl.Job[mail]) error {
		ran <- job.Args.To
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { stopped <- w.Run(ctx) }()
	enqueue(t, q, "later", pawl.Delay(24*time.Hour))
	enqueue(t, q, "now")
	equal(t, "now", <-ran)
	q.Advance(24 * time.Hour)
	equal(t, "later", <-ran)
	stop()
	equal(t, error(nil), <-stopped)
}

// Rule: a lease does not expire by the queue's clock; in a bubble it expires in time.
func TestLeasesDoNotEndByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := pawltest.New(t, &memory.Options{Lease: time.Minute})
		id := enqueue(t, q, "ada")
		if _, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot}); err != nil {
			t.Fatal(err)
		}
		state := func() pawl.State {
			e, err := q.Job(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return e.State
		}
		q.Advance(time.Hour)
		equal(t, pawl.Leased, state())
		<-time.After(time.Minute)
		equal(t, pawl.Ready, state())
	})
}

// Rule: in a bubble the queue's time passes, as the package comment says.
func TestTimePassesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := pawltest.New(t, nil)
		go func() { _ = answering(q, errBusy).Run(t.Context()) }()
		enqueue(t, q, "ada", pawl.Delay(22*time.Hour))
		<-time.After(24 * time.Hour)
		synctest.Wait()
		stats, err := q.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, pawl.Counts{}, stats.Queues[0].Counts)
	})
}

// Rule: the options apply: the queue's clock is based on Now, and OnEvent receives the events.
func TestSettingsCount(t *testing.T) {
	var events atomic.Int64
	day := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	q := pawltest.New(t, &memory.Options{
		Now:        func() time.Time { return day },
		OnEvent:    func(pawl.Event) { events.Add(1) },
		MaxPayload: 100,
	})
	equal(t, day, q.Now())
	q.Advance(time.Hour)
	equal(t, day.Add(time.Hour), q.Now())
	q.Advance(-2 * time.Hour)
	equal(t, day.Add(-time.Hour), q.Now())
	id := enqueue(t, q, "ada")
	equal(t, int64(1), events.Load())
	e, err := q.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, day.Add(-time.Hour), e.Created)
	_, err = sendMail.Enqueue(t.Context(), q, mail{To: string(make([]byte, 200))})
	equal(t, true, errors.Is(err, pawl.ErrPayloadTooLarge))

	delayed := enqueue(t, q, "later", pawl.Delay(time.Hour))
	equal(t, 2, len(pawltest.Drain(t, q, answering(q)))) // also by a clock that stands still
	equal(t, day, q.Now())
	if _, err := q.Job(t.Context(), delayed); !errors.Is(err, pawl.ErrNotFound) {
		t.Fatal(err)
	}
}

// Rule: the queue is closed when its test ends.
func TestClosedAtCleanup(t *testing.T) {
	var q *pawltest.Queue
	t.Run("test", func(t *testing.T) {
		q = pawltest.New(t, nil)
		enqueue(t, q, "ada", pawl.Delay(time.Hour))
	})
	_, err := q.Stats(t.Context())
	equal(t, true, errors.Is(err, pawl.ErrClosed))
	q.Advance(time.Hour) // does no harm
}

// Rule: a dead job that moves to another queue was enqueued there.
func TestForwardedJobsAreEnqueued(t *testing.T) {
	from, to := pawltest.New(t, nil), pawltest.New(t, nil)
	enqueue(t, from, "ada")
	pawltest.Drain(t, from, answering(from, pawl.Permanent(errBusy)))
	if _, err := dlq.Forward(t.Context(), from, dlq.ToQueue(to, ""), nil, pawl.Filter{}); err != nil {
		t.Fatal(err)
	}
	equal(t, 1, len(pawltest.Enqueued(t, to, sendMail)))
}
