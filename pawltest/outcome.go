package pawltest

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// Outcome is what became of a job: mostly by a run, of which it is the end.
type Outcome struct {
	// Type is one of
	//
	//   - pawl.EventSucceeded: the handler returned nil
	//   - pawl.EventRetried: it failed, and runs again after Delay
	//   - pawl.EventDied: the job is a dead letter, for Reason
	//   - pawl.EventSnoozed: it comes back after Delay
	//   - pawl.EventReleased, pawl.EventReaped: it was interrupted, or outlived its lease
	//   - pawl.EventSkipped: it did not run, since its idempotency key was done
	//
	// or "" when no job was ready.
	Type pawl.EventType

	// Job is the job as it was then, with its history, to read; nil when none was
	// ready.
	Job *pawl.Envelope

	Delay  time.Duration // of a retry or a snooze
	Reason pawl.Reason   // of a death
	Cause  string        // of a failed run or a death
}

func outcomeOf(e pawl.Event) Outcome {
	o := Outcome{Type: e.Type, Job: own(e.Job), Delay: e.Delay, Cause: e.Cause}
	switch {
	case e.Type == pawl.EventSnoozed:
		o.Delay = e.Job.NotBefore.Sub(e.At)
	case e.Job.Death != nil:
		o.Reason = e.Job.Death.Reason
	}
	return o
}

// String is one line for messages.
func (o Outcome) String() string {
	if o.Type == "" {
		return "no job was ready"
	}
	text := fmt.Sprintf("%s: %s", describe(o.Job), o.Type)
	switch o.Type {
	case pawl.EventRetried:
		text += fmt.Sprintf(" in %v", o.Delay)
	case pawl.EventSnoozed:
		text += fmt.Sprintf(" for %v", o.Delay)
	case pawl.EventDied:
		text += fmt.Sprintf(" (%s)", o.Reason)
	}
	if cause, _, _ := strings.Cut(o.Cause, "\n"); cause != "" {
		text += ": " + cause
	}
	return text
}
