package bolt

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Listen calls fn for transitions, in addition to [Options.OnEvent] and under the same rules:
// after they are durable, from several goroutines; fn must be short and must not call the
// queue. Panics of fn are logged. Fn receives every transition of a call that begins after
// Listen returned, and possibly transitions of calls in progress.
//
// Stop removes fn and waits for running calls of fn, so fn must not call it. Calling stop twice is
// harmless, and the queue may be closed first.
//
// Without listeners, events cost nothing.
func (q *Queue) Listen(fn func(pawl.Event)) (stop func()) {
	return q.scheduler.observer.Listen(fn)
}

// Totals counts the transitions that this process has made since it opened the queue.
func (q *Queue) Totals() driver.Totals { return q.scheduler.observer.Totals() }
