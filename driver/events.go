package driver

import (
	"time"

	"github.com/gopawl/pawl"
)

// CountEvent adds an event to the counters of a collector, by the table in docs/contract.md.
func CountEvent(c pawl.Collector, e pawl.Event) {
	l := pawl.Labels{Queue: e.Job.Queue, Kind: e.Job.Kind}
	increment := func(names ...string) {
		for _, name := range names {
			c.Increment(name, l)
		}
	}
	observe := func(name string, d time.Duration) { c.Observe(name, l, d.Seconds()) }

	switch e.Type {
	case pawl.EventFetched:
		increment(pawl.JobsFetched)
		observe(pawl.JobsAgeSeconds, max(0, e.At.Sub(e.Job.NotBefore)))
		if !e.Job.BackoffSince.IsZero() {
			observe(pawl.RetryLatencySeconds, max(0, e.Backoff))
		}
	case pawl.EventSucceeded:
		increment(pawl.JobsSucceeded)
		observe(pawl.JobsExecSeconds, e.Took)
	case pawl.EventSkipped:
		increment(pawl.JobsSkippedIdempotent)
	case pawl.EventRetried:
		increment(pawl.JobsFailed, pawl.JobsRequeued, pawl.RetriesTotal)
		observe(pawl.RetryDelaySeconds, e.Delay)
	case pawl.EventDied:
		increment(pawl.JobsFailedPermanently)
		switch e.Job.Death.Reason {
		case pawl.ReasonExhausted:
			increment(pawl.JobsFailed, pawl.RetryExhaustedTotal)
		case pawl.ReasonPermanent:
			increment(pawl.JobsFailed)
		case pawl.ReasonPoison:
			increment(pawl.JobsPoisoned)
		case pawl.ReasonDeadline:
			increment(pawl.JobsExpired)
		case pawl.ReasonCancelled:
			increment(pawl.JobsCancelled)
		case pawl.ReasonSignature:
			increment(pawl.JobsRejectedSignature)
		case pawl.ReasonPayload:
			increment(pawl.JobsRejectedPayload)
		}
	case pawl.EventReleased:
		increment(pawl.JobsReleased)
	case pawl.EventSnoozed:
		increment(pawl.JobsSnoozed)
	case pawl.EventReaped:
		increment(pawl.JobsReaped)
	case pawl.EventRecovered:
		increment(pawl.JobsRecovered)
	}
	if e.TimedOut {
		increment(pawl.JobsTimedOut)
	}
}
