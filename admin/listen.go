package admin

import (
	"context"
	"iter"
	"sync"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// ringSize is how many events wait for a listener that is slow.
const ringSize = 1024

// listen iterates over the events of a queue. It hears what happens from the beginning of
// the iteration on. When the queue closes, or is poisoned, it tells what it has heard before
// it ends with that error.
func listen(ctx context.Context, q *bolt.Queue) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := newRing()
		defer q.Listen(r.put)()
		for {
			var ended error
			select {
			case <-r.bell:
			case <-q.Done():
				if _, ended = q.Extend(ctx); ended == nil { // of no lease: it tells why
					ended = pawl.ErrClosed
				}
			case <-ctx.Done():
			}
			for _, e := range r.take() {
				if ctx.Err() == nil && !yield(e, nil) {
					return
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

// ring holds the events that a listener has not taken yet, up to ringSize.
type ring struct {
	bell chan struct{} // capacity 1: there is something to take

	mu     sync.Mutex
	events []Event
	missed int64 // since the last of events
}

func newRing() *ring { return &ring{bell: make(chan struct{}, 1)} }

// put is called by the queue between two commits, so it never waits.
func (r *ring) put(e pawl.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == ringSize {
		r.missed++
		return
	}
	if e.Job != nil {
		own := *e.Job // which may be the caller's of Enqueue, to change as he likes
		e.Job = &own
	}
	r.events = append(r.events, Event{Event: e, Missed: r.missed})
	r.missed = 0
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

func (r *ring) take() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}
