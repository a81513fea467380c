package workflow

import (
	"context"
	"errors"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// If several processes share a store, this process is not notified of changes by the others, so
// it polls. A waiter polls for the end of a run. A run that is active here polls for requests.
// A build polls for runs that another build has blocked and that it may continue. A suspended
// run does not have to poll: the process that wakes it makes its job ready.
const (
	leastLook   = 100 * time.Millisecond // of a waiter
	mostLook    = time.Minute            // of a waiter
	activeLook  = 10 * time.Second
	blockedLook = 5 * time.Minute

	deathWait = time.Second // after this time, a waiter also looks for the death of the job

	deathLook = 8 // a waiter looks for the death of the job, which is rare, only once in so many looks
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

// watch makes an active run poll for changes by other processes, until stop is called.
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

// offer polls until the queue is closed. It makes runs of flows ready that processes of other builds have blocked.
// It also makes runs ready whose turn to begin has come, since the clock may have been set back.
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
