package pawltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

// RunOne makes w run one job, if one is ready in q, and returns its outcome. An error of the handler is
// an outcome and does not fail the test; an error of the worker does.
//
// w must work on q, or on a wrapper of q, and no other worker may run jobs of q at the same time.
func RunOne(t testing.TB, q *Queue, w *worker.Worker) Outcome {
	t.Helper()
	before := len(q.since(0))
	err := w.ProcessOnce(t.Context())
	events := q.since(before)
	ran := slices.IndexFunc(events, isFetched)
	switch {
	case err != nil && !errors.Is(err, pawl.ErrEmpty):
		t.Fatalf("pawltest: run one job: %v", err)
	case err == nil && ran < 0:
		t.Fatalf("pawltest: the worker ran a job of another queue than the one given")
	}
	var last Outcome // of the job that ran, or else of a skipped job
	for _, o := range events {
		if ran >= 0 && o.Job.ID == events[ran].Job.ID || ran < 0 && o.Type == pawl.EventSkipped {
			last = o
		}
	}
	return last
}

// Drain makes w run jobs until no job of q is ready, leased or delayed. Whenever all jobs that are left
// wait for a time, such as that of a retry, a [pawl.Rate], or the end of a rest, it moves the clock of q to
// the first of these times. It returns an [Outcome] for each attempt, and for each job that died during
// Drain without an attempt, in order. Jobs that died before, such as by [Queue.Advance], are not included.
//
// Jobs of kinds and queues that w does not work on stay. So do jobs that wait for such a job or for a dead
// one: see [pawl.OrderHold] and [pawl.After]. Drain waits for jobs on a paused queue and for leases of others, as
// [worker.Worker.Drain] does. It fails the test if jobs never end. A queue has one Drain at a time.
func Drain(t testing.TB, q *Queue, w *worker.Worker) []Outcome {
	t.Helper()
	before, d := len(q.since(0)), new(drain)
	q.begin(d)
	defer q.begin(nil)
	for more := true; more; {
		err := w.Drain(t.Context(), pawl.WaitDrained)
		due, delayed, listed := q.delayed(t.Context())
		if err = errors.Join(err, listed); err != nil {
			t.Fatalf("pawltest: drain: %v", err)
		}
		if more = d.failure == "" && !due.IsZero(); more {
			more = d.jump(q, due, delayed)
		}
	}
	if d.failure != "" {
		t.Fatalf("pawltest: %s", d.failure)
	}
	return slices.DeleteFunc(q.since(before), isFetched)
}

func isFetched(o Outcome) bool { return o.Type == pawl.EventFetched }

// begin sets the Drain that is under way; nil for none.
func (q *Queue) begin(d *drain) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drain, q.changed = d, nil
}

// since returns the outcomes after the first n.
func (q *Queue) since(n int) []Outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.outcomes[n:])
}

// delayed returns the time at which the first delayed job is due, or zero, and a line for each of the
// first few.
func (q *Queue) delayed(ctx context.Context) (due time.Time, lines []string, err error) {
	for e, err := range q.Jobs(ctx, pawl.Filter{State: pawl.Delayed}) {
		switch {
		case err != nil:
			return due, lines, err
		case due.IsZero():
			due = e.NotBefore
		case len(lines) == maxListed:
			return due, append(lines, "  and more"), nil
		}
		lines = append(lines, fmt.Sprintf("  %s, until %v", describe(e), e.NotBefore))
	}
	return due, lines, nil
}
