package workflow

import (
	"context"
	"errors"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A store that several processes share tells this process nothing of what the others change, so
// its engines look: a waiter for the end of a run, a run that is active here, and a build that
// could continue what another build has blocked. A suspended run needs none of that: whoever
// wakes it makes its job ready.
const (
	leastLook   = 100 * time.Millisecond // of a waiter
	mostLook    = time.Minute            // of a waiter
	activeLook  = 10 * time.Second
	blockedLook = 5 * time.Minute

	deathWait = time.Second // of a waiter, before it waits for the death of the job, too

	deathLook = 8 // every so many looks, a waiter looks for the death of the job, which is rare
)

// isShared reports whether other processes may change the runs of a store.
func isShared(q Store) bool {
	able, ok := q.(driver.Able)
	return ok && able.Abilities()&pawl.Shared != 0
}

// polling says when a waiter looks again: after a tenth of the time that it has waited.
type polling struct {
	hub   *hub
	since time.Time
}

func (h *hub) polling() polling { return polling{h, time.Now()} }

// next returns the time of the next look. Over a store of this process alone that time never comes.
func (p polling) next() <-chan time.Time {
	if !p.hub.shared {
		return nil
	}
	return time.After(min(max(time.Since(p.since)/10, leastLook), mostLook))
}

// watch has an active run look at what other processes changed, until stop.
func (x *execution) watch() (stop func()) {
	if !x.engine.hub.shared {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(activeLook)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				x.notify()
				x.wakeWaiting(func(s *scope) bool { return s.waits.child != nil })
			}
		}
	}()
	return func() { close(done) }
}

// offer makes runs of flows ready that processes of other builds block, and those whose turn it is, since the clock
// may have been set back, until the queue is closed.
func (e *Engine) offer() {
	ticker := time.NewTicker(blockedLook)
	defer ticker.Stop()
	for {
		select {
		case <-e.queue.Done():
			return
		case <-ticker.C:
			flows := e.hub.handled()
			if err := errors.Join(e.unblock(context.Background(), flows), e.admit(context.Background(), flows)); err != nil && !errors.Is(err, pawl.ErrClosed) {
				e.opts.Logger.Warn("cannot make blocked and waiting runs ready; trying again", "error", err)
			}
		}
	}
}
