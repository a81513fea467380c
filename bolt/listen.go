package bolt

import (
	"slices"
	"sync"

	"github.com/gopawl/pawl"
)

// Listen has fn told of transitions beside [Options.OnEvent], on the same terms: once they are
// durable, from several goroutines, and it must be short and must not call the queue. What
// panics in it is logged. It is told of every transition by a call that begins after Listen
// has returned, and maybe of some that were under way.
//
// Stop ends it: it waits for calls of fn under way, and when it has returned fn is not
// called any more. So fn itself must not call it. To stop twice does no harm, and a queue may
// be closed before.
//
// While nobody listens events cost nothing.
func (q *Queue) Listen(fn func(pawl.Event)) (stop func()) {
	return q.scheduler.observer.listen(fn)
}

// listener is one of those that came by Listen.
type listener struct {
	fn func(pawl.Event)

	mu      sync.RWMutex // held to call fn, and alone to stop that
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

// change replaces the listeners by what fn makes of a copy of them.
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
