package admin

import (
	"slices"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

const (
	bufferSize = 1024        // events that wait for a listener that is slow
	handful    = 64          // that a listener takes at a time
	hold       = time.Second // for which a full ring of which nobody takes keeps them
)

// broadcaster is all who listen to the events of one queue. To the queue it is one listener,
// so one that is stalled costs the queue nothing: once its ring is full it is not told of
// anything, and what it misses is a difference of two counts.
type broadcaster struct {
	q *bolt.Queue

	// changing is held to come and to go, and never by put: to stop listening waits for that.
	changing sync.Mutex
	size     int    // how many listen; guarded by changing
	stop     func() // while somebody does; guarded by changing

	mu   sync.Mutex      // guards told, open and all rings
	told int64           // events so far
	open []*subscription // those that have room
}

// ring holds the events that one listener has not taken yet, up to bufferSize. One that is full
// keeps the oldest for a second, in which its listener may only have been slow. Then it lets
// go of them: a thousand jobs for each of those who have stalled, in the memory of an app,
// make every collection of garbage dearer.
type subscription struct {
	broadcaster *broadcaster
	ready       chan struct{} // capacity 1: there is something to take

	// Guarded by broadcaster.mu.
	events []Event
	missed int64       // since the last of events, up to full
	full   int64       // broadcaster.told when it became full; 0 while it has room
	letGo  *time.Timer // of what it holds; set while it is full
}

// join has a new listener told of what happens from now on.
func (a *broadcaster) subscribe() *subscription {
	r := &subscription{broadcaster: a, ready: make(chan struct{}, 1)}
	a.changing.Lock()
	defer a.changing.Unlock()
	a.mu.Lock()
	a.open = append(a.open, r)
	a.mu.Unlock()
	if a.size++; a.size == 1 {
		a.stop = a.q.Listen(a.put)
	}
	return r
}

// leave ends what join began.
func (r *subscription) unsubscribe() {
	a := r.broadcaster
	a.changing.Lock()
	defer a.changing.Unlock()
	a.mu.Lock()
	r.reopen()
	a.open = slices.DeleteFunc(a.open, func(other *subscription) bool { return other == r })
	a.mu.Unlock()
	if a.size--; a.size == 0 {
		a.stop()
	}
}

// put is called by the queue between two commits, so it never waits.
func (a *broadcaster) put(e pawl.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told++
	if len(a.open) == 0 {
		return
	}
	if e.Job != nil {
		own := *e.Job // which may be another's to change; those who listen here only read
		e.Job = &own
	}
	full := false
	for _, r := range a.open {
		r.events = append(r.events, Event{Event: e, Missed: r.missed})
		r.missed = 0
		select {
		case r.ready <- struct{}{}:
		default:
		}
		if len(r.events) == bufferSize {
			r.close()
			full = true
		}
	}
	if full {
		a.open = slices.DeleteFunc(a.open, func(r *subscription) bool { return r.full != 0 })
	}
}

// close notes that the ring is full. broadcaster.mu is held.
func (r *subscription) close() {
	at := r.broadcaster.told
	r.full = at
	r.letGo = time.AfterFunc(hold, func() {
		r.broadcaster.mu.Lock()
		defer r.broadcaster.mu.Unlock()
		if r.full != at { // somebody has taken them while this began
			return
		}
		for _, e := range r.events {
			r.missed += e.Missed + 1
		}
		r.events = nil
	})
}

// take moves the next events to the listener, which has room for some, and says how many. From
// now on the ring has room for others.
func (r *subscription) take(into []Event) int {
	r.broadcaster.mu.Lock()
	defer r.broadcaster.mu.Unlock()
	n := copy(into, r.events)
	clear(r.events[:n])
	if r.events = r.events[n:]; len(r.events) == 0 {
		r.events = nil
	}
	r.reopen()
	return n
}

// reopen notes that the ring has room, if it had none. broadcaster.mu is held.
func (r *subscription) reopen() {
	if r.full == 0 {
		return
	}
	r.letGo.Stop()
	r.missed += r.broadcaster.told - r.full
	r.full = 0
	r.broadcaster.open = append(r.broadcaster.open, r)
}
