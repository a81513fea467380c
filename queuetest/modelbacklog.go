package queuetest

import (
	"cmp"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// countWaiting adds n to the waiting jobs of the queue and of the key of a job.
func countWaiting(counts map[modelKey]int, e *pawl.Envelope, n int) {
	queue := cmp.Or(e.Queue, pawl.DefaultQueue)
	counts[modelKey{queue: queue}] += n
	if e.Key != "" {
		counts[modelKey{queue: queue, key: e.Key}] += n
	}
}

// exceedsBound reports whether a queue or a key has no room for more waiting jobs.
func (m *model) exceedsBound(adds map[modelKey]int) bool {
	waiting := make(map[modelKey]int)
	for _, j := range m.jobs {
		if driver.IsWaiting(j.State) {
			countWaiting(waiting, &j.Envelope, 1)
		}
	}
	for of, n := range adds {
		bound := m.limits[of.queue].MaxWaiting
		if of.key != "" {
			bound = m.limits[of.queue].MaxWaitingPerKey
		}
		if bound > 0 && n > 0 && waiting[of]+n > bound {
			return true
		}
	}
	return false
}
