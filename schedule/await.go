package schedule

import (
	"sync/atomic"

	"github.com/gopawl/pawl"
)

// listener is a store that reports the events of its jobs in this process.
type listener interface {
	Listen(fn func(pawl.Event)) (stop func())
}

// awaited are jobs whose end lets a buffered tick fire. awaited listens to events as long as
// there are such jobs.
type awaited struct {
	store  Store
	ring   func()
	jobs   atomic.Pointer[map[pawl.ID]bool]
	ignore func() // stops listening; nil if it does not
}

// await sets the jobs to wait for. It returns false if the store does not report their ends.
func (a *awaited) await(schedules []named) bool {
	q, ok := a.store.(listener)
	switch {
	case !ok:
		return len(schedules) == 0
	case len(schedules) == 0:
		a.stop()
		return true
	}
	jobs := make(map[pawl.ID]bool)
	for _, s := range schedules {
		for _, id := range s.row.Alive {
			jobs[id] = true
		}
	}
	a.jobs.Store(&jobs)
	if a.ignore == nil {
		a.ignore = q.Listen(a.event)
	}
	return true
}

func (a *awaited) event(e pawl.Event) {
	switch e.Type {
	case pawl.EventSucceeded, pawl.EventSkipped, pawl.EventDied:
		if (*a.jobs.Load())[e.Job.ID] {
			a.ring()
		}
	}
}

// stop ends the listening.
func (a *awaited) stop() {
	if a.ignore != nil {
		a.ignore()
		a.ignore = nil
	}
}
