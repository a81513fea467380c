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

// RunOne has w run one job, if one is ready in q, and returns what became of it. An
// error of the handler is an outcome, not a failure of the test.
//
// The queue of w is q, or one around it, and no other worker runs jobs of q meanwhile.
// That w cannot run at all fails the test.
func RunOne(t testing.TB, q *Queue, w *worker.Worker) Outcome {
	t.Helper()
	before := len(q.since(0))
	err := w.ProcessOnce(t.Context())
	told := q.since(before)
	ran := slices.IndexFunc(told, isFetched)
	switch {
	case err != nil && !errors.Is(err, pawl.ErrEmpty):
		t.Fatalf("pawltest: run one job: %v", err)
	case err == nil && ran < 0:
		t.Fatalf("pawltest: the worker ran a job of another queue than the one given")
	}
	var last Outcome // of the job that ran; without a run, of one that was skipped
	for _, o := range told {
		if ran >= 0 && o.Job.ID == told[ran].Job.ID || ran < 0 && o.Type == pawl.EventSkipped {
			last = o
		}
	}
	return last
}

// mostJumps is how often Drain moves the clock before it gives up.
const mostJumps = 10_000

// Drain has w run jobs until no job of q is ready, leased or delayed, and returns what
// became of them, in that order: an [Outcome] for each run, and for each job that died
// without one meanwhile; what died before, as by [Queue.Advance], is seen by q.Job. Where all that is left is delayed, as retries are, it moves the clock of
// q to the time when the first is due.
//
// Jobs of kinds that w does not handle stay, and so do those of queues on which it does not
// work. What keeps
// a [worker.Worker.Drain] waiting keeps this one waiting too: a paused queue that has
// jobs, and a lease that somebody else holds. Jobs that never come to an end fail the
// test after a while.
func Drain(t testing.TB, q *Queue, w *worker.Worker) []Outcome {
	t.Helper()
	before := len(q.since(0))
	for jumps := 0; ; jumps++ {
		if err := w.Drain(t.Context(), pawl.WaitDrained); err != nil {
			t.Fatalf("pawltest: drain: %v", err)
		}
		due, delayed := q.delayed(t)
		if due.IsZero() {
			break
		}
		if jumps == mostJumps {
			t.Fatalf("pawltest: the queue does not come to an end; after %d moves of its clock these jobs are delayed again:\n%s",
				jumps, strings.Join(delayed, "\n"))
		}
		q.goTo(due)
	}
	return slices.DeleteFunc(q.since(before), isFetched)
}

func isFetched(o Outcome) bool { return o.Type == pawl.EventFetched }

// since is a copy of what was told of jobs after the first n times.
func (q *Queue) since(n int) []Outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.outcomes[n:])
}

// delayed is when the first delayed job is due, zero when there is none, and a line for
// each of the first few.
func (q *Queue) delayed(t testing.TB) (due time.Time, lines []string) {
	t.Helper()
	for e, err := range q.Jobs(t.Context(), pawl.Filter{State: pawl.Delayed}) {
		switch {
		case err != nil:
			t.Fatalf("pawltest: drain: %v", err)
		case due.IsZero():
			due = e.NotBefore
		case len(lines) == longestList:
			return due, append(lines, "  and more")
		}
		lines = append(lines, fmt.Sprintf("  %s, until %v", describe(e), e.NotBefore))
	}
	return due, lines
}
