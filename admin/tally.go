package admin

import (
	"maps"
	"sync"

	"github.com/gopawl/pawl"
)

// maxTallied limits the queues that are counted, since their names come from outside.
const maxTallied = 1000

// tally counts the attempts that ended, by queue.
type tally struct {
	stop func()

	mu     sync.Mutex
	queues map[string]Done // guarded by mu
}

// newTally begins to count, or returns nil for a queue without events.
func newTally(q Store) *tally {
	events, ok := q.(Listener)
	if !ok {
		return nil
	}
	t := &tally{queues: make(map[string]Done)}
	t.stop = events.Listen(t.hear)
	return t
}

// hear counts an event that ended an attempt, as driver.CountEvent does.
func (t *tally) hear(e pawl.Event) {
	var one Done
	switch {
	case e.Type == pawl.EventSucceeded:
		one.Succeeded = 1
	case e.Type == pawl.EventRetried,
		e.Type == pawl.EventDied && e.Job.Death != nil && (e.Job.Death.Reason == pawl.ReasonExhausted || e.Job.Death.Reason == pawl.ReasonPermanent):
		one.Failed = 1
	default:
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if so, known := t.queues[e.Job.Queue]; known || len(t.queues) < maxTallied {
		t.queues[e.Job.Queue] = Done{so.Succeeded + one.Succeeded, so.Failed + one.Failed}
	}
}

// done returns the counts so far, nil without a tally.
func (t *tally) done() map[string]Done {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.queues)
}
