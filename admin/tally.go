package admin

import (
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// maxTallied bounds the queues whose runs are counted, since names come from outside.
const maxTallied = 1000

// tally counts the runs that end, by queue.
type tally struct {
	stop func()

	mu     sync.RWMutex // held to write by who adds a queue
	queues map[string]*counts
}

type counts struct{ succeeded, failed atomic.Int64 }

func newTally(q *bolt.Queue) *tally {
	t := &tally{queues: make(map[string]*counts)}
	t.stop = q.Listen(t.hear)
	return t
}

// hear counts an event that ended a run. It is the same as what pawl.Count counts as a
// success or a failure.
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

// of is the counts of a queue, nil when there are too many.
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

// done is what was counted so far.
func (t *tally) done() map[string]Done {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make(map[string]Done, len(t.queues))
	for queue, c := range t.queues {
		all[queue] = Done{Succeeded: c.succeeded.Load(), Failed: c.failed.Load()}
	}
	return all
}
