package driver

import (
	"sync"

	"github.com/gopawl/pawl"
)

// Totals counts the transitions of jobs that a process has made since it opened the queue. Unlike
// events, the counts cost almost nothing, so a queue always keeps them.
type Totals struct {
	Changes   int64 // of every type
	Enqueued  int64
	Succeeded int64
	Retried   int64 // attempts that failed, and are tried again
	Died      int64
}

// Count adds n transitions of a type.
func (t *Totals) Count(e pawl.EventType, n int64) {
	t.Changes += n
	switch e {
	case pawl.EventEnqueued:
		t.Enqueued += n
	case pawl.EventSucceeded:
		t.Succeeded += n
	case pawl.EventRetried:
		t.Retried += n
	case pawl.EventDied:
		t.Died += n
	}
}

// Add adds other totals.
func (t *Totals) Add(o Totals) {
	t.Changes += o.Changes
	t.Enqueued += o.Enqueued
	t.Succeeded += o.Succeeded
	t.Retried += o.Retried
	t.Died += o.Died
}

// Since returns what was counted since o.
func (t Totals) Since(o Totals) Totals {
	return Totals{t.Changes - o.Changes, t.Enqueued - o.Enqueued, t.Succeeded - o.Succeeded, t.Retried - o.Retried, t.Died - o.Died}
}

// Counted reports whether anything but Changes was counted.
func (t *Totals) Counted() bool { return t.Enqueued|t.Succeeded|t.Retried|t.Died != 0 }

// Counter keeps the totals of a queue. The zero value is ready for use.
type Counter struct {
	mu     sync.Mutex
	totals Totals // guarded by mu
}

// Count adds the transitions of a transaction that is durable.
func (c *Counter) Count(t Totals) {
	if t == (Totals{}) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.totals.Add(t)
}

// Totals returns what was counted so far.
func (c *Counter) Totals() Totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.totals
}
