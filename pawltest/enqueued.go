package pawltest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// Enqueued returns the arguments of all jobs of a kind that were enqueued in q so far, in order,
// whatever their state now. A job that its unique key kept out does not count, nor does a job that
// another one replaced.
//
// [RequireNothingElse] regards these jobs as matched.
func Enqueued[T any](t testing.TB, q *Queue, kind *pawl.Kind[T]) []T {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []T
	for _, e := range q.enqueued {
		if e.Kind != kind.Name() {
			continue
		}
		job, err := kind.Job(&e.Envelope)
		if err != nil {
			t.Fatalf("pawltest: %v", err)
		}
		e.matched = true
		all = append(all, job.Args)
	}
	return all
}

// RequireEnqueued fails the test unless a job with these arguments was enqueued in q, whatever its
// state now. It returns the job as it was enqueued, with its queue, priority and schedule.
//
// Each call matches one job, the first that no earlier call matched, so two calls with the same
// arguments require two jobs. Arguments are compared in their decoded form by [reflect.DeepEqual].
func RequireEnqueued[T any](t testing.TB, q *Queue, kind *pawl.Kind[T], want T) *pawl.Envelope {
	t.Helper()
	e, err := kind.Envelope(want)
	if err != nil {
		t.Fatalf("pawltest: %v", err)
	}
	wanted, err := kind.Job(e) // fields that are not encoded do not count
	if err != nil {
		t.Fatalf("pawltest: %v", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.enqueued {
		if e.matched || e.Kind != kind.Name() {
			continue
		}
		if job, err := kind.Job(&e.Envelope); err == nil && reflect.DeepEqual(job.Args, wanted.Args) {
			e.matched = true
			return own(&e.Envelope)
		}
	}
	t.Fatalf("pawltest: job not enqueued%s:\n  %s\n%s", q.besides(), describe(e), q.list(true))
	return nil
}

// RequireNothingElse fails the test if a job was enqueued in q that no call of [Enqueued] or
// [RequireEnqueued] matched.
func RequireNothingElse(t testing.TB, q *Queue) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if list := q.list(false); list != "" {
		t.Fatalf("pawltest: unexpected jobs:\n%s", list)
	}
}

// besides qualifies "not enqueued" if earlier calls matched jobs.
func (q *Queue) besides() string {
	for _, e := range q.enqueued {
		if e.matched {
			return ", apart from jobs that are already matched"
		}
	}
	return ""
}

// maxListed limits the jobs in a message.
const maxListed = 50

// list returns a line for each enqueued job, or for each that is not matched, if any.
func (q *Queue) list(all bool) string {
	var lines []string
	for _, e := range q.enqueued {
		line := "  " + describe(&e.Envelope)
		if e.State == pawl.Delayed {
			line += fmt.Sprintf(" in %v", e.NotBefore.Sub(e.Created))
		}
		switch {
		case e.matched && !all:
			continue
		case e.matched:
			line += " (matched)"
		}
		lines = append(lines, line)
	}
	if more := len(lines) - maxListed; more > 0 {
		lines = append(lines[:maxListed], fmt.Sprintf("  and %d more", more))
	}
	switch {
	case !all:
	case len(lines) == 0:
		return "nothing was enqueued"
	default:
		lines = append([]string{"enqueued jobs:"}, lines...)
	}
	return strings.Join(lines, "\n")
}

// describe returns the kind, the arguments and unusual settings of a job.
func describe(e *pawl.Envelope) string {
	text := e.Kind + " " + arguments(e)
	if e.Queue != "" && e.Queue != pawl.DefaultQueue {
		text += fmt.Sprintf(" on queue %q", e.Queue)
	}
	if e.Priority != 0 {
		text += fmt.Sprintf(" with priority %d", e.Priority)
	}
	return text
}

// arguments returns the arguments of a job as JSON if possible.
func arguments(e *pawl.Envelope) string {
	job, err := pawl.Define[any](e.Kind).Job(e)
	if err != nil {
		return fmt.Sprintf("(%d bytes)", len(e.Payload))
	}
	if text, err := json.Marshal(job.Args); err == nil {
		return ellipsis.Truncate(string(text), 1<<10)
	}
	return ellipsis.Truncate(fmt.Sprint(job.Args), 1<<10)
}
