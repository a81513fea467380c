package pawltest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gopawl/pawl"
)

// Enqueued returns the arguments of all jobs of a kind that were enqueued in q so far,
// in their order, whatever has become of them since. A job that a unique key kept out
// is none of them, nor is one that another has replaced.
//
// For [RequireNothingElse] these jobs are named.
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
		e.named = true
		all = append(all, job.Args)
	}
	return all
}

// RequireEnqueued fails the test unless a job with these arguments was enqueued in q,
// whatever has become of it since. It returns the job as it was then, to look at its
// queue, its priority or its schedule.
//
// Each call names one job, the first that no call has named before: who calls it twice
// with the same arguments requires two such jobs. Arguments are compared as a handler
// gets them, by [reflect.DeepEqual].
func RequireEnqueued[T any](t testing.TB, q *Queue, kind *pawl.Kind[T], want T) *pawl.Envelope {
	t.Helper()
	e, err := kind.Envelope(want)
	if err != nil {
		t.Fatalf("pawltest: %v", err)
	}
	wanted, err := kind.Job(e) // what does not travel cannot differ
	if err != nil {
		t.Fatalf("pawltest: %v", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.enqueued {
		if e.named || e.Kind != kind.Name() {
			continue
		}
		if job, err := kind.Job(&e.Envelope); err == nil && reflect.DeepEqual(job.Args, wanted.Args) {
			e.named = true
			return own(&e.Envelope)
		}
	}
	t.Fatalf("pawltest: this job was not enqueued%s:\n  %s\n%s", q.besides(), describe(e), q.list(true))
	return nil
}

// RequireNothingElse fails the test when a job was enqueued in q that no call of
// [Enqueued] or [RequireEnqueued] has named.
func RequireNothingElse(t testing.TB, q *Queue) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if list := q.list(false); list != "" {
		t.Fatalf("pawltest: there are jobs that nothing in the test has named:\n%s", list)
	}
}

// besides is what to add to "was not enqueued" when some jobs are named already.
func (q *Queue) besides() string {
	for _, e := range q.enqueued {
		if e.named {
			return ", besides those that the test has named"
		}
	}
	return ""
}

// longestList is how many jobs a message names.
const longestList = 50

// list is the jobs that were enqueued, a line each: all of them, or those that were not
// named, of which there may be none.
func (q *Queue) list(all bool) string {
	var lines []string
	for _, e := range q.enqueued {
		line := "  " + describe(&e.Envelope)
		if e.State == pawl.Delayed {
			line += fmt.Sprintf(" in %v", e.NotBefore.Sub(e.Created))
		}
		switch {
		case e.named && !all:
			continue
		case e.named:
			line += " (named)"
		}
		lines = append(lines, line)
	}
	if more := len(lines) - longestList; more > 0 {
		lines = append(lines[:longestList], fmt.Sprintf("  and %d more", more))
	}
	switch {
	case !all:
	case len(lines) == 0:
		return "nothing was enqueued"
	default:
		lines = append([]string{"enqueued were:"}, lines...)
	}
	return strings.Join(lines, "\n")
}

// describe is a job in a message: its kind, its arguments whatever their type, and
// what is unusual about it.
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

// arguments are those of a job as JSON where they can be written so.
func arguments(e *pawl.Envelope) string {
	job, err := pawl.Define[any](e.Kind).Job(e)
	if err != nil {
		return fmt.Sprintf("(%d bytes)", len(e.Payload))
	}
	if text, err := json.Marshal(job.Args); err == nil {
		return pawl.Clip(string(text), 1<<10)
	}
	return pawl.Clip(fmt.Sprint(job.Args), 1<<10)
}
