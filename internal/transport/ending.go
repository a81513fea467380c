package transport

import (
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Ending is what a settlement makes of a job.
type Ending struct {
	Job     *pawl.Envelope // as it becomes
	History []pawl.Failure
	Event   pawl.Event // its job has a payload until the job is stored

	// Changed says that the job has to be stored anew. Otherwise its lease ends, and it stays.
	Changed bool
}

// End applies a settlement to a job, which it changes.
func End(s *pawl.Settlement, e *pawl.Envelope, history []pawl.Failure, now time.Time) Ending {
	n := Ending{Job: e, History: history, Changed: true}
	n.Event = pawl.Event{At: now, Job: e, Took: driver.Took(s.Lease), TimedOut: s.Lease.TimedOut}
	failure := driver.FailureOf(s.Cause)
	failure.At, failure.Attempt = now, driver.NextAttempt(e.Attempts)
	delay := max(s.Delay, 0)
	e.BackoffSince, e.State = time.Time{}, pawl.Ready
	switch s.Outcome {
	case pawl.OutcomeAck:
		e.Attempts = driver.NextAttempt(e.Attempts)
		e.State, e.Completed, n.Changed = pawl.Completed, now, false
		n.Event.Type = pawl.EventSucceeded
	case pawl.OutcomeRelease:
		n.Event.Type, n.Changed = pawl.EventReleased, false
	case pawl.OutcomeSnooze:
		n.Event.Type = pawl.EventSnoozed
		if n.Changed = !s.Lease.Started.IsZero() && e.Attempts > 0; n.Changed {
			e.Attempts = 0
		}
	case pawl.OutcomeNack:
		n.Event.Type, n.Event.Delay, n.Event.Cause = pawl.EventRetried, delay, failure.Error
		e.BackoffSince = now
		n.count(failure)
	case pawl.OutcomeAbandon:
		n.Event.Type, n.Event.Cause = pawl.EventDied, failure.Error
		switch {
		case e.Death != nil: // it was dead
		case s.Reason == pawl.ReasonPoison || !driver.CountsAttempt(s.Reason):
			e.Failures++
			n.History = append(n.History, failure)
		default:
			n.count(failure)
		}
		if e.Death == nil {
			e.Death = &pawl.Death{Reason: s.Reason, At: now.Round(0)}
		}
		e.State = pawl.Dead
	}
	if s.Outcome == pawl.OutcomeNack || s.Outcome == pawl.OutcomeSnooze {
		if e.NotBefore = now.Add(delay).Round(0); delay > 0 {
			e.State = pawl.Delayed
		}
	}
	return n
}

// count notes a failed attempt.
func (n *Ending) count(f pawl.Failure) {
	n.Job.Attempts = driver.NextAttempt(n.Job.Attempts)
	n.Job.Failures++
	n.History = append(n.History, f)
}
