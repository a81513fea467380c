package admin

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

const (
	bufferSize = 1024        // events that a subscription buffers
	handful    = 64          // events that a listener takes at once
	hold       = time.Second // how long a full subscription keeps events that nobody takes
)

// broadcaster passes the events of one queue to all subscriptions. The queue sees it as one
// listener, so a stalled subscription costs the queue nothing: a full subscription receives no
// events, and the number that it misses is the difference of two counters.
type broadcaster struct {
	q Listener

	// changing is held to subscribe and to unsubscribe. put never takes it, because ending a
	// listener waits for put.
	changing sync.Mutex
	size     int    // subscriptions; guarded by changing
	stop     func() // ends listening, if size > 0; guarded by changing

	mu   sync.Mutex      // guards sent, open and all subscriptions
	sent int64           // events so far
	open []*subscription // those that are not full
}

// subscription buffers up to bufferSize events for one listener. A full subscription keeps the
// oldest for a second, since its listener may only be slow. Then it drops them: a thousand jobs
// for each stalled listener would make every garbage collection of the app more expensive.
type subscription struct {
	broadcaster *broadcaster
	ready       chan struct{} // capacity 1: there is something to take

	// Guarded by broadcaster.mu.
	events []Event
	missed int64       // events missed after the last of events, until full
	full   int64       // broadcaster.sent when it became full; 0 while it has room
	drop   *time.Timer // drops events; set while it is full
}

// subscribe adds a subscription to the events from now on.
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

// unsubscribe ends the subscription.
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

// put passes an event on. The queue calls it between two commits, so it never waits.
func (a *broadcaster) put(e pawl.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent++
	if len(a.open) == 0 {
		return
	}
	if e.Job != nil {
		own := *e.Job // other code may change the original; listeners here only read
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

// close marks the subscription as full. The caller holds broadcaster.mu.
func (r *subscription) close() {
	at := r.broadcaster.sent
	r.full = at
	r.drop = time.AfterFunc(hold, func() {
		r.broadcaster.mu.Lock()
		defer r.broadcaster.mu.Unlock()
		if r.full != at { // the listener took events in the meantime
			return
		}
		for _, e := range r.events {
			r.missed += e.Missed + 1
		}
		r.events = nil
	})
}

// take moves the next events to the listener and returns how many. That frees room in the
// subscription.
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

// reopen marks the subscription as having room. The caller holds broadcaster.mu.
func (r *subscription) reopen() {
	if r.full == 0 {
		return
	}
	r.drop.Stop()
	r.missed += r.broadcaster.sent - r.full
	r.full = 0
	r.broadcaster.open = append(r.broadcaster.open, r)
}

// listen iterates over the events of the queue that happen after the iteration begins. When the
// queue closes or is poisoned, it yields the buffered events and ends with that error.
func (a *broadcaster) listen(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := a.subscribe()
		defer r.unsubscribe()
		taken := make([]Event, handful) // limits what is held during yield
		for {
			var ended error
			select {
			case <-r.ready:
			case <-a.q.Done():
				ended = a.q.Err()
			case <-ctx.Done():
			}
			for n := r.take(taken); n > 0 && ctx.Err() == nil; n = r.take(taken) {
				for _, e := range taken[:n] {
					if ctx.Err() == nil && !yield(e, nil) {
						return
					}
				}
			}
			if ctx.Err() != nil {
				ended = ctx.Err()
			}
			if ended != nil {
				yield(Event{}, ended)
				return
			}
		}
	}
}
