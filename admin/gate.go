package admin

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// gate admits a few requests at a time to expensive work, in the order of their arrival. While
// others wait, a slot stays empty after each request for a multiple of the time that the work
// took. Together, all operators therefore use a bounded share of the processors, whatever their
// number.
type gate struct {
	name    string // of the work, for errors
	slots   chan struct{}
	timeout time.Duration // how long a request waits before it fails with ErrBusy
	queue   int32         // how many requests may wait
	rest    int           // the multiple
	waiting atomic.Int32
}

// maxRest is the longest time that a slot stays empty.
const maxRest = 250 * time.Millisecond

// newGate returns a gate without a queue.
func newGate(name string, width int) *gate {
	return &gate{name: name, slots: make(chan struct{}, width)}
}

// withQueue lets that many requests wait, each no longer than the timeout.
func (g *gate) withQueue(length int32, timeout time.Duration) *gate {
	g.queue, g.timeout = length, timeout
	return g
}

// enter waits for a slot; leave frees it.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	select {
	case g.slots <- struct{}{}:
		return g.leave(time.Now()), nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > g.queue {
		return nil, g.busy()
	}
	select {
	case g.slots <- struct{}{}:
		return g.leave(time.Now()), nil
	case <-time.After(g.timeout):
		return nil, g.busy()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (g *gate) leave(entered time.Time) func() {
	return func() {
		rest := min(maxRest, time.Duration(g.rest)*time.Since(entered))
		if g.waiting.Load() == 0 || rest == 0 {
			<-g.slots
			return
		}
		time.AfterFunc(rest, func() { <-g.slots })
	}
}

func (g *gate) busy() error {
	return fmt.Errorf("%w: %d %s at a time; try again later", ErrBusy, cap(g.slots), g.name)
}
