package bolt

import "github.com/gopawl/pawl/driver"

// observer reports durable transactions: their events, and the ends of jobs that calls wait for.
type observer struct {
	driver.Reporter
	waiters driver.Waiters
}

// ended reports the ends of jobs to the calls that wait for them.
func (o *observer) ended(t *txn) {
	if !o.waiters.Any() {
		return
	}
	for _, e := range t.events {
		o.waiters.Report(e)
	}
	for _, h := range t.ended {
		o.waiters.Look(h.id)
	}
}
