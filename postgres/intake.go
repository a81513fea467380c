package postgres

import (
	"context"
	"sync"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// operation is a call that is to be carried out in a transaction of the scheduler.
type operation interface {
	// needs names what apply reads. It runs before each attempt.
	needs(n *needs)

	// apply makes the change in a transaction. Its error is the answer, and then it has changed
	// nothing.
	apply(t *txn) error
}

// call is an operation with its caller.
type call struct {
	operation
	ctx  context.Context
	err  error
	done chan struct{} // closed when err is the answer
}

func (c *call) answer(err error) {
	c.err = err
	close(c.done)
}

// intake is where callers leave their calls for the scheduler, which takes all at once. That is
// the group commit: what comes while a transaction is on its way shares the next one.
type intake struct {
	mu     sync.Mutex
	calls  []*call
	ended  []*fetch // whose context has ended
	closed bool
	signal chan struct{} // has a value when there is something to do
}

// submit leaves an operation and waits for its answer.
func (q *Queue) submit(ctx context.Context, op operation) error {
	if ctx.Err() != nil {
		return driver.NotAccepted(ctx)
	}
	c := &call{operation: op, ctx: ctx, done: make(chan struct{})}
	if !q.intake.put(c) {
		return pawl.ErrClosed
	}
	<-c.done
	return c.err
}

// put reports whether the intake is open.
func (in *intake) put(c *call) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	in.calls = append(in.calls, c)
	in.wake()
	return true
}

func (in *intake) wake() {
	select {
	case in.signal <- struct{}{}:
	default:
	}
}

func (in *intake) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.wake()
}

// take returns the calls since the last take, the fetches that wait no longer, and whether
// there will be no more of them.
func (in *intake) take() (calls []*call, ended []*fetch, closed bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	calls, ended, in.calls, in.ended = in.calls, in.ended, nil, nil
	return calls, ended, in.closed
}

// end notes that the context of a fetch has ended.
func (in *intake) end(f *fetch) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = append(in.ended, f)
	in.wake()
}

// isClosed reports whether the queue takes no more calls.
func (in *intake) isClosed() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.closed
}
