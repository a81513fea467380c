package redis

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// operation is a call as the script carries it out.
type operation interface {
	// request returns the call for the script. The scheduler asks once for each group that the call is in.
	request(g *group) any
	// result takes the result. Its error is the answer.
	result(g *group, b msgpack.RawMessage) error
}

// call is an operation with its caller.
type call struct {
	operation
	ctx   context.Context
	size  int // roughly, in jobs
	bytes int
	stage atomic.Int32
	err   error
	done  chan struct{} // closed when err is the answer
}

// The stages of a call. The scheduler accepts it for a group, and offers it again if that has no answer
// for it. The caller withdraws it.
const (
	offered int32 = iota
	accepted
	withdrawn
)

func (c *call) answer(err error) {
	c.err = err
	close(c.done)
}

func (c *call) accept() bool   { return c.stage.CompareAndSwap(offered, accepted) }
func (c *call) withdraw() bool { return c.stage.CompareAndSwap(offered, withdrawn) }

// reopen offers a call again, and answers it if its context has ended. It reports whether the call waits.
func (c *call) reopen() bool {
	c.stage.Store(offered)
	if c.ctx.Err() != nil && c.withdraw() {
		c.answer(driver.NotAccepted(c.ctx))
		return false
	}
	return c.stage.Load() == offered
}

// The limits of a group. While a script runs, the server does nothing else.
const (
	groupJobs  = 512
	groupBytes = 4 << 20 // of payloads, unless a single call has more
)

// intake is where callers leave their calls for the scheduler, which takes them as a group.
type intake struct {
	mu     sync.Mutex
	calls  []*call
	news   bool // other processes may have changed something
	closed bool
	signal chan struct{} // has a value when there is something to do
}

// submit leaves an operation and waits for its answer, or until the context withdraws it.
func (q *Queue) submit(ctx context.Context, op operation, size, bytes int) error {
	if ctx.Err() != nil {
		return driver.NotAccepted(ctx)
	}
	c := &call{operation: op, ctx: ctx, size: size, bytes: bytes, done: make(chan struct{})}
	if err := q.intake.put(c); err != nil {
		return err
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	if c.withdraw() {
		q.intake.wake()
		return driver.NotAccepted(ctx)
	}
	<-c.done
	return c.err
}

func (in *intake) put(c *call) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return pawl.ErrClosed
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

// close has the intake refuse all later calls.
func (in *intake) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.wake()
}

// ring notes that other processes may have changed something.
func (in *intake) ring() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.news = true
	in.wake()
}

// settleDown lets the callers run that the last group has answered, until they leave no more calls. A
// group costs a round trip, whatever its size.
func (in *intake) settleDown() {
	for n := -1; ; {
		in.mu.Lock()
		more := len(in.calls)
		in.mu.Unlock()
		if more == n {
			return
		}
		n = more
		runtime.Gosched()
	}
}

// take returns the next calls, whether there are news, and whether there will be no more calls.
func (in *intake) take() (calls []*call, news, closed bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n, size, bytes := 0, 0, 0
	for ; n < len(in.calls); n++ {
		c := in.calls[n]
		if n > 0 && (size+c.size > groupJobs || bytes+c.bytes > groupBytes) {
			break
		}
		size, bytes = size+c.size, bytes+c.bytes
	}
	calls, in.calls = in.calls[:n:n], in.calls[n:]
	if len(in.calls) > 0 {
		in.wake()
	}
	news, in.news = in.news, false
	return calls, news, in.closed && len(in.calls) == 0
}

// isClosed reports whether the queue takes no more calls.
func (in *intake) isClosed() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.closed
}

// tick is a call that changes nothing. What is due happens.
type tick struct{}

func (tick) request(*group) any                      { return verb{"tick"} }
func (tick) result(*group, msgpack.RawMessage) error { return nil }

// verb is a request without arguments.
type verb struct {
	Verb string `msgpack:"v"`
}

// look has happen what is due.
func (q *Queue) look(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return q.submit(ctx, tick{}, 1, 0)
}

// mostSleep is after which time a clock that was set is noticed.
const mostSleep = time.Minute
