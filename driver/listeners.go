package driver

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
)

// Listeners are the functions that get the events of a queue, and which come and go. The zero
// value has none.
type Listeners struct {
	changing sync.Mutex                  // held to replace the list
	all      atomic.Pointer[[]*listener] // nil if there are none
}

// listener is one of them.
type listener struct {
	fn func(pawl.Event)

	mu      sync.RWMutex // read-locked to call fn, locked to stop
	stopped bool         // guarded by mu
}

// Listen adds fn. Stop removes it and waits for running calls of fn, which is not called after
// stop has returned. So fn must not call it. Calling stop twice is harmless.
func (l *Listeners) Listen(fn func(pawl.Event)) (stop func()) {
	own := &listener{fn: fn}
	l.change(func(all []*listener) []*listener { return append(all, own) })
	return func() {
		l.change(func(all []*listener) []*listener {
			return slices.DeleteFunc(all, func(other *listener) bool { return other == own })
		})
		own.mu.Lock()
		defer own.mu.Unlock()
		own.stopped = true
	}
}

// Any reports whether there is a listener.
func (l *Listeners) Any() bool { return l.all.Load() != nil }

// Emit calls the listeners for an event. It recovers their panics, and reports each.
func (l *Listeners) Emit(e pawl.Event, panicked func(p any)) {
	if all := l.all.Load(); all != nil {
		for _, one := range *all {
			one.hear(e, panicked)
		}
	}
}

func (l *listener) hear(e pawl.Event, panicked func(p any)) {
	defer func() {
		if p := recover(); p != nil {
			panicked(p)
		}
	}()
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.stopped {
		l.fn(e)
	}
}

// change replaces the list of listeners by the result of fn on a copy of it.
func (l *Listeners) change(fn func([]*listener) []*listener) {
	l.changing.Lock()
	defer l.changing.Unlock()
	var all []*listener
	if now := l.all.Load(); now != nil {
		all = slices.Clone(*now)
	}
	if all = fn(all); len(all) == 0 {
		l.all.Store(nil)
	} else {
		l.all.Store(&all)
	}
}
