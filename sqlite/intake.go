package sqlite

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// operation is a call that is to be carried out in a transaction of the scheduler.
type operation interface {
	// apply makes the change in a transaction. Its error is the answer, and then it has changed
	// nothing.
	apply(t *txn) error
}

// call is an operation with its caller.
type call struct {
	operation
	ticket
	ctx   context.Context
	bytes int
	err   error
	done  chan struct{} // closed when err is the answer
}

func (c *call) answer(err error) {
	c.err = err
	close(c.done)
}

// ticket decides between a transaction that accepts a call and a caller that withdraws it. A
// transaction that fails without an effect offers the call again.
type ticket struct{ stage atomic.Int32 }

const (
	offered int32 = iota
	accepted
	withdrawn
)

func (t *ticket) accept() bool {
	return t.stage.CompareAndSwap(offered, accepted) || t.stage.Load() == accepted
}
func (t *ticket) reopen()           { t.stage.CompareAndSwap(accepted, offered) }
func (t *ticket) withdraw() bool    { return t.stage.CompareAndSwap(offered, withdrawn) }
func (t *ticket) isWithdrawn() bool { return t.stage.Load() == withdrawn }

// The limits of a group.
const (
	groupCalls = 4096
	groupBytes = 32 << 20 // of payloads, unless a single call has more
)

// intake is where callers leave their calls for the scheduler, which takes them as a group. That is
// the group commit: what comes while a transaction is on its way shares the next one.
type intake struct {
	mu     sync.Mutex
	calls  []*call
	ended  []*fetch      // whose context has ended
	closed bool          // it takes no more calls
	poison error         // it takes no more calls, since a commit failed
	signal chan struct{} // has a value when there is something to do
}

// submit leaves an operation and waits for its answer, or until the context withdraws it.
func (q *Queue) submit(ctx context.Context, op operation) error {
	if ctx.Err() != nil {
		return driver.NotAccepted(ctx)
	}
	c := &call{operation: op, ctx: ctx, done: make(chan struct{})}
	if sized, ok := op.(interface{ bytes() int }); ok {
		c.bytes = sized.bytes()
	}
	if err := q.intake.put(c); err != nil {
		return err
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	if c.withdraw() {
		return driver.NotAccepted(ctx)
	}
	<-c.done
	return c.err
}

// put takes a call, unless the intake takes no more.
func (in *intake) put(c *call) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.refusal(); err != nil {
		return err
	}
	in.calls = append(in.calls, c)
	in.wake()
	return nil
}

func (in *intake) wake() {
	select {
	case in.signal <- struct{}{}:
	default:
	}
}

// close has the intake refuse all later calls with ErrClosed.
func (in *intake) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.wake()
}

// fail has the intake refuse all later calls with an error, until it is closed.
func (in *intake) fail(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.poison = err
	in.wake()
}

// take returns the next group of calls, the fetches that wait no longer, and whether there will be
// no more of them.
func (in *intake) take() (calls []*call, ended []*fetch, closed bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n, bytes := 0, 0
	for n < min(len(in.calls), groupCalls) && (n == 0 || bytes+in.calls[n].bytes <= groupBytes) {
		bytes += in.calls[n].bytes
		n++
	}
	calls, in.calls = in.calls[:n:n], in.calls[n:]
	if len(in.calls) > 0 {
		in.wake()
	}
	ended, in.ended = in.ended, nil
	return calls, ended, in.closed && len(in.calls) == 0
}

// end notes that the context of a fetch has ended.
func (in *intake) end(f *fetch) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = append(in.ended, f)
	in.wake()
}

// refuses returns why the queue takes no more calls, nil if it does.
func (in *intake) refuses() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.refusal()
}

func (in *intake) refusal() error {
	if in.closed {
		return pawl.ErrClosed
	}
	return in.poison
}

// poisoned returns the error of a queue that is poisoned, whether it is closed or not.
func (in *intake) poisoned() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.poison
}
