package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

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
	ticket
	ctx   context.Context
	until time.Time // when the call gives up on the server
	bytes int
	names []string // what it may wait for, once it is deferred
	tries int      // how often it waited for the lock of another session
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
	ended  []*fetch // whose context has ended
	closed bool
	signal chan struct{} // has a value when there is something to do
}

// submit leaves an operation and waits for its answer, or until the context withdraws it.
func (q *Queue) submit(ctx context.Context, op operation) error {
	if ctx.Err() != nil {
		return driver.NotAccepted(ctx)
	}
	c := &call{operation: op, ctx: ctx, until: time.Now().Add(q.opts.Timeout), done: make(chan struct{})}
	if sized, ok := op.(interface{ bytes() int }); ok {
		c.bytes = sized.bytes()
	}
	if !q.intake.put(c) {
		return pawl.ErrClosed
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

// len returns how many calls wait.
func (in *intake) len() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.calls)
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

// isClosed reports whether the queue takes no more calls.
func (in *intake) isClosed() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.closed
}
