// Package lease has the part of a pawl.Lease that only queues and workers touch. Package driver
// exports it.
package lease

import "sync"

// Cancellation tells the holder of a lease, once, that the job is cancelled. The zero value has
// not fired; a nil one never will. Its methods may be called from any goroutine.
type Cancellation struct {
	mu    sync.Mutex
	fired bool
	first func()   // usually the only one
	more  []func() // behind it
}

// Fire makes c fire, and calls the functions that were given to [Cancellation.OnFire]. Only the
// first call does anything.
func (c *Cancellation) Fire() {
	if c == nil {
		return
	}
	c.mu.Lock()
	first, more := c.first, c.more
	c.fired, c.first, c.more = true, nil, nil
	c.mu.Unlock()
	if first != nil {
		first()
	}
	for _, fn := range more {
		fn()
	}
}

// Fired reports whether c has fired.
func (c *Cancellation) Fired() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fired
}

// OnFire calls fn when c fires, at once if it has. Fn is short, calls no queue and does not
// panic: it runs where the queue does its work.
func (c *Cancellation) OnFire(fn func()) {
	if c == nil || fn == nil {
		return
	}
	c.mu.Lock()
	fired := c.fired
	switch {
	case fired:
	case c.first == nil:
		c.first = fn
	default:
		c.more = append(c.more, fn)
	}
	c.mu.Unlock()
	if fired {
		fn()
	}
}
