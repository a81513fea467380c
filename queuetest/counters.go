package queuetest

import (
	"cmp"

	"github.com/gopawl/pawl/metrics"
)

func counterTests() []test {
	return []test{
		newTest("of a long walk",
			"After any number of operations, each counter equals the number of events that it counts.", func(f *fixture) {
				if !f.config.Events {
					f.Skip("the queue emits no events")
				}
				steps := cmp.Or(f.config.CounterSteps, defaultCounterSteps)
				w := f.walk(1, steps, 500)
				if steps < defaultCounterSteps/50 {
					return
				}
				counted := w.tally.Snapshot()
				for _, name := range []string{
					metrics.JobsFetched, metrics.JobsSucceeded, metrics.JobsFailed, metrics.JobsFailedPermanently, metrics.JobsTimedOut,
					metrics.JobsReleased, metrics.JobsSnoozed, metrics.JobsReaped,
				} {
					equal(f, counted.Total(name) > 0, true, "the walk met what counts as "+name)
				}
				equal(f, counted.Total(metrics.RetriesTotal), counted.Total(metrics.JobsRequeued), "retries, which are jobs requeued")
			}),
	}
}
