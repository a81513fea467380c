package pawltest

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// Outcome is the result of an attempt, or of a job that ended without one.
type Outcome struct {
	// Type is one of
	//
	//   - pawl.EventSucceeded: the handler returned nil
	//   - pawl.EventRetried: the attempt failed, and the job runs again after Delay
	//   - pawl.EventDied: the job is dead, for Reason
	//   - pawl.EventSnoozed: the job runs again after Delay
	//   - pawl.EventReleased, pawl.EventReaped: the attempt was interrupted, or outlived its lease
	//   - pawl.EventSkipped: the job did not run, because its idempotency key is done
	//
	// or "" if no job was ready.
	Type pawl.EventType

	// Job is a read-only copy of the job at that time, with its history; nil if none was ready.
	Job *pawl.Envelope

	Delay  time.Duration // before a retry or after a snooze
	Reason pawl.Reason   // why the job is dead
	Cause  string        // error of the failed attempt, or why the job died
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

// String returns one line for messages.
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
