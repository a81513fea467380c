package admin

import (
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
)

// maxTallied limits the queues that are counted, since their names come from outside.
const maxTallied = 1000

// tally counts the attempts that ended, by queue.
type tally struct {
	stop func()

	mu     sync.RWMutex // held to write to add a queue
	queues map[string]*counts
}

type counts struct{ succeeded, failed atomic.Int64 }

// newTally begins to count, or returns nil for a queue without events.
func newTally(q Store) *tally {
	events, ok := q.(Listener)
	if !ok {
		return nil
	}
	t := &tally{queues: make(map[string]*counts)}
	t.stop = events.Listen(t.hear)
	return t
}

// hear counts an event that ended an attempt, as driver.CountEvent does.
func (t *tally) hear(e pawl.Event) {
	switch {
	case e.Type == pawl.EventSucceeded:
		if c := t.of(e.Job.Queue); c != nil {
			c.succeeded.Add(1)
		}
	case e.Type == pawl.EventRetried,
		e.Type == pawl.EventDied && e.Job.Death != nil && (e.Job.Death.Reason == pawl.ReasonExhausted || e.Job.Death.Reason == pawl.ReasonPermanent):
		if c := t.of(e.Job.Queue); c != nil {
			c.failed.Add(1)
		}
	}
}

// of returns the counts of a queue, or nil if there are too many queues.
func (t *tally) of(queue string) *counts {
	t.mu.RLock()
	c := t.queues[queue]
	t.mu.RUnlock()
	if c != nil {
		return c
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c = t.queues[queue]; c == nil && len(t.queues) < maxTallied {
		c = new(counts)
		t.queues[queue] = c
	}
	return c
}

// done returns the counts so far, nil without a tally.
func (t *tally) done() map[string]Done {
	if t == nil {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make(map[string]Done, len(t.queues))
	for queue, c := range t.queues {
		all[queue] = Done{Succeeded: c.succeeded.Load(), Failed: c.failed.Load()}
	}
	return all
}
