package bolt

import (
	"slices"
	"sync"

	"github.com/gopawl/pawl"
)

// Listen calls fn for transitions, in addition to [Options.OnEvent] and under the same rules:
// after they are durable, from several goroutines; fn must be short and must not call the
// queue. Panics of fn are logged. Fn receives every transition of a call that begins after
// Listen returned, and possibly transitions of calls in progress.
//
// Stop removes fn. It waits for running calls of fn, and fn is not called after it returns. So
// fn must not call it. Calling stop twice is harmless, and the queue may be closed first.
//
// Without listeners, events cost nothing.
func (q *Queue) Listen(fn func(pawl.Event)) (stop func()) {
	return q.scheduler.observer.listen(fn)
}

// listener is a subscriber added by Listen.
type listener struct {
	fn func(pawl.Event)

	mu      sync.RWMutex // read-locked to call fn, locked to stop
	stopped bool         // guarded by mu
}

func (l *listener) hear(e pawl.Event) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.stopped {
		l.fn(e)
	}
}

func (o *observer) listen(fn func(pawl.Event)) (stop func()) {
	l := &listener{fn: fn}
	o.change(func(all []*listener) []*listener { return append(all, l) })
	return func() {
		o.change(func(all []*listener) []*listener {
			return slices.DeleteFunc(all, func(other *listener) bool { return other == l })
		})
		l.mu.Lock()
		defer l.mu.Unlock()
		l.stopped = true
	}
}

// change replaces the list of listeners by the result of fn on a copy of it.
func (o *observer) change(fn func([]*listener) []*listener) {
	o.changing.Lock()
	defer o.changing.Unlock()
	var all []*listener
	if now := o.listeners.Load(); now != nil {
		all = slices.Clone(*now)
	}
	if all = fn(all); len(all) == 0 {
		o.listeners.Store(nil)
	} else {
		o.listeners.Store(&all)
	}
}
