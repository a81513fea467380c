package redis

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Listen calls fn for each later transition that this process makes, under the rules of
// [Options.OnEvent]. Stop removes fn and waits for a running call of fn, so fn must not call it. Calling
// stop twice is harmless.
func (q *Queue) Listen(fn func(pawl.Event)) (stop func()) { return q.reporter.Listen(fn) }

// Totals counts the transitions that this process has made since it opened the queue.
func (q *Queue) Totals() driver.Totals { return q.reporter.Totals() }

// Done returns a channel that is closed when the queue has stopped.
func (q *Queue) Done() <-chan struct{} { return q.done }

// Err returns nil until the channel of [Queue.Done] is closed, and [pawl.ErrClosed] after that.
func (q *Queue) Err() error {
	select {
	case <-q.done:
		return pawl.ErrClosed
	default:
		return nil
	}
}
