package postgres

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Listen calls fn for the transitions that this process makes, as [Options.OnEvent], from now on. It
// does not hear of those of other processes. Stop removes fn and waits for a running call of fn, so
// fn must not call it. Calling stop twice is harmless.
func (q *Queue) Listen(fn func(pawl.Event)) (stop func()) { return q.listeners.Listen(fn) }

// Done returns a channel that is closed when the queue has stopped.
func (q *Queue) Done() <-chan struct{} { return q.done }

// Err returns nil until the channel of [Queue.Done] is closed, and [pawl.ErrClosed] from then on.
func (q *Queue) Err() error {
	select {
	case <-q.done:
		return pawl.ErrClosed
	default:
		return nil
	}
}

// listens reports whether anybody wants events.
func (q *Queue) listens() bool {
	return q.opts.OnEvent != nil || q.opts.Collector != nil || q.listeners.Any()
}

// report emits an event of a transaction that is committed. A panic of a receiver is logged.
func (q *Queue) report(e pawl.Event) {
	panicked := func(p any) {
		q.opts.Logger.Error("a listener for events panicked", "event", string(e.Type), "id", e.Job.ID, "panic", p)
	}
	guard := func(call func()) {
		defer func() {
			if p := recover(); p != nil {
				panicked(p)
			}
		}()
		call()
	}
	if q.opts.Collector != nil {
		guard(func() { driver.CountEvent(q.opts.Collector, e) })
	}
	if q.opts.OnEvent != nil {
		guard(func() { q.opts.OnEvent(e) })
	}
	q.listeners.Emit(e, panicked)
	q.waiters.Report(e)
}
