// Package transport has what the engines over message brokers do alike: the form of a job in a message, what a
// settlement makes of a job, the leases of a process, and the order of fetches.
package transport

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/metrics"
)

// Reporter passes on what happened to jobs.
type Reporter struct {
	Logger    pawl.Logger
	Collector metrics.Collector // may be nil
	OnEvent   func(pawl.Event)  // may be nil
}

// Emit reports events, after the broker has answered.
func (r *Reporter) Emit(events ...pawl.Event) {
	for _, e := range events {
		if e.Type == pawl.EventDied {
			r.Logger.Error("job is dead", "id", e.Job.ID, "kind", e.Job.Kind, "queue", e.Job.Queue,
				"reason", e.Job.Death.Reason, "attempts", e.Job.Attempts, "cause", e.Cause)
		}
		if r.Collector != nil {
			driver.CountEvent(r.Collector, e)
		}
		if r.OnEvent != nil {
			r.OnEvent(e)
		}
	}
}
