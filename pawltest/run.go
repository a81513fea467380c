package pawltest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// maxJumps limits how often one Drain moves the clock.
const maxJumps = 10_000

// Drain makes w run jobs until no job of q is ready, leased or delayed. Whenever all jobs that are left
// wait for a time, such as that of a retry, a [pawl.Rate], or the end of a rest, it moves the clock of q to
// the first of these times. It returns an [Outcome] for each attempt, and for each job that died during
// Drain without an attempt, in order. Jobs that died before, such as by [Queue.Advance], are not included.
//
// Jobs of kinds and queues that w does not work on stay. So do jobs that wait for such a job or for a dead
// one: see [pawl.OrderHold] and [pawl.After]. Drain waits for jobs on a paused queue and for leases of others, as
// [worker.Worker.Drain] does. It fails the test if jobs never end.
func Drain(t testing.TB, q *Queue, w *worker.Worker) []Outcome {
	t.Helper()
	before, jumps := len(q.since(0)), 0
	jump := func(to time.Time, waiting []string) {
		t.Helper()
		if jumps++; jumps > maxJumps {
			t.Fatalf("pawltest: the queue does not become empty; after %d moves of its clock these jobs still wait:\n%s",
				maxJumps, strings.Join(waiting, "\n"))
		}
		q.goTo(to)
	}
	for {
		if err := q.pass(t, w, jump); err != nil {
			t.Fatalf("pawltest: drain: %v", err)
		}
		due, delayed := q.delayed(t)
		if due.IsZero() {
			break
		}
		jump(due, delayed)
	}
	return slices.DeleteFunc(q.since(before), isFetched)
}

func isFetched(o Outcome) bool { return o.Type == pawl.EventFetched }

// since returns the outcomes after the first n.
func (q *Queue) since(n int) []Outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.outcomes[n:])
}

// delayed returns the time at which the first delayed job is due, or zero, and a line for each of the
// first few.
func (q *Queue) delayed(t testing.TB) (due time.Time, lines []string) {
	t.Helper()
	for e, err := range q.Jobs(t.Context(), pawl.Filter{State: pawl.Delayed}) {
		switch {
		case err != nil:
			t.Fatalf("pawltest: drain: %v", err)
		case due.IsZero():
			due = e.NotBefore
		case len(lines) == maxListed:
			return due, append(lines, "  and more")
		}
		lines = append(lines, fmt.Sprintf("  %s, until %v", describe(e), e.NotBefore))
	}
	return due, lines
}
