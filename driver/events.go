package driver

import (
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// CountEvent adds an event to the counters of a collector, by the table in docs/contract.md.
func CountEvent(c metrics.Collector, e pawl.Event) {
	l := metrics.Labels{Queue: e.Job.Queue, Kind: e.Job.Kind}
	increment := func(names ...string) {
		for _, name := range names {
			c.Increment(name, l)
		}
	}
	observe := func(name string, d time.Duration) { c.Observe(name, l, d.Seconds()) }

	switch e.Type {
	case pawl.EventFetched:
		increment(metrics.JobsFetched)
		observe(metrics.JobsAgeSeconds, max(0, e.At.Sub(e.Job.NotBefore)))
		if !e.Job.BackoffSince.IsZero() {
			observe(metrics.RetryLatencySeconds, max(0, e.Backoff))
		}
	case pawl.EventSucceeded:
		increment(metrics.JobsSucceeded)
		observe(metrics.JobsExecSeconds, e.Took)
	case pawl.EventSkipped:
		increment(metrics.JobsSkippedIdempotent)
	case pawl.EventRetried:
		increment(metrics.JobsFailed, metrics.JobsRequeued, metrics.RetriesTotal)
		observe(metrics.RetryDelaySeconds, e.Delay)
	case pawl.EventDied:
		increment(metrics.JobsFailedPermanently)
		switch e.Job.Death.Reason {
		case pawl.ReasonExhausted:
			increment(metrics.JobsFailed, metrics.RetryExhaustedTotal)
		case pawl.ReasonPermanent:
			increment(metrics.JobsFailed)
		case pawl.ReasonPoison:
			increment(metrics.JobsPoisoned)
		case pawl.ReasonDeadline:
			increment(metrics.JobsExpired)
		case pawl.ReasonCancelled:
			increment(metrics.JobsCancelled)
		case pawl.ReasonSignature:
			increment(metrics.JobsRejectedSignature)
		case pawl.ReasonPayload:
			increment(metrics.JobsRejectedPayload)
		}
	case pawl.EventReleased:
		increment(metrics.JobsReleased)
	case pawl.EventSnoozed:
		increment(metrics.JobsSnoozed)
	case pawl.EventReaped:
		increment(metrics.JobsReaped)
	case pawl.EventRecovered:
		increment(metrics.JobsRecovered)
	}
	if e.TimedOut {
		increment(metrics.JobsTimedOut)
	}
}
