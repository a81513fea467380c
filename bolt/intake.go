package bolt

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

// Bounds of what may wait for the scheduler. Callers beyond them wait for room.
const (
	maxWaiting      = 8192
	maxWaitingBytes = 128 << 20

	maxGroup      = 4096     // operations of one transaction
	maxGroupBytes = 32 << 20 // and their bytes, or a single operation of more
)

// intake is where callers leave their operations for the scheduler.
type intake struct {
	bell chan struct{} // capacity 1: something is there to look at

	mu       sync.Mutex
	settles  []*call // and extends; taken before the others, for whom they free what they wait for
	others   []*call
	fetches  []*fetchCall
	bytes    int           // of settles and others
	room     chan struct{} // closed when there is room again
	refusing error         // what new calls get; nil while the queue is open
}

func newIntake() *intake {
	return &intake{bell: make(chan struct{}, 1), room: make(chan struct{})}
}

// call is one operation on its way through the scheduler.
type call struct {
	op    operation
	bytes int
	stage atomic.Int32
	err   error
	done  chan struct{} // closed when the call is answered
}

// fetchCall is a fetch that waits until there is a job for it.
type fetchCall struct {
	call
	request pawl.Request
	jobs    []fetched
	expires time.Time // when their leases do
	served  bool      // by the transaction under way; answered when that is durable
}

// The stages of a call. Only the scheduler accepts and only the caller withdraws,
// and whoever is first wins: an accepted call is carried out whatever its context
// does, a withdrawn one never is.
const (
	offered int32 = iota
	accepted
	withdrawn
)

// accept is the scheduler's; it may accept again what it accepted before.
func (c *call) accept() bool {
	return c.stage.CompareAndSwap(offered, accepted) || c.stage.Load() == accepted
}

func (c *call) answer(err error) {
	c.err = err
	close(c.done)
}

// wait returns the answer, or ErrNotAccepted when ctx ends first and the call can
// still be withdrawn.
func (c *call) wait(ctx context.Context, in *intake) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	if c.stage.CompareAndSwap(offered, withdrawn) {
		in.ring() // so that the scheduler lets go of it
		return notAccepted(ctx)
	}
	<-c.done
	return c.err
}

func notAccepted(ctx context.Context) error {
	err := fmt.Errorf("%w: %w", pawl.ErrNotAccepted, ctx.Err())
	if cause := context.Cause(ctx); cause != ctx.Err() {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

func (in *intake) ring() {
	select {
	case in.bell <- struct{}{}:
	default:
	}
}

// do hands op to the scheduler and waits until it is durable or refused.
func (in *intake) do(ctx context.Context, op operation, bytes int) error {
	c := &call{op: op, bytes: bytes, done: make(chan struct{})}
	if err := in.offer(ctx, c); err != nil {
		return err
	}
	return c.wait(ctx, in)
}

// offer queues a call, once there is room.
func (in *intake) offer(ctx context.Context, c *call) error {
	if ctx.Err() != nil {
		return notAccepted(ctx)
	}
	for {
		in.mu.Lock()
		if in.refusing != nil {
			defer in.mu.Unlock()
			return in.refusing
		}
		n := len(in.settles) + len(in.others)
		if n == 0 || n < maxWaiting && in.bytes+c.bytes <= maxWaitingBytes {
			switch c.op.(type) {
			case *settle, *extend:
				in.settles = append(in.settles, c)
			default:
				in.others = append(in.others, c)
			}
			in.bytes += c.bytes
			in.mu.Unlock()
			in.ring()
			return nil
		}
		room := in.room
		in.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return notAccepted(ctx)
		}
	}
}

// fetch queues a fetch and waits for its jobs.
func (in *intake) fetch(ctx context.Context, r pawl.Request) (*fetchCall, error) {
	if ctx.Err() != nil {
		return nil, notAccepted(ctx)
	}
	f := &fetchCall{call: call{done: make(chan struct{})}, request: r}
	in.mu.Lock()
	if in.refusing != nil {
		defer in.mu.Unlock()
		return nil, in.refusing
	}
	in.fetches = append(in.fetches, f)
	in.mu.Unlock()
	in.ring()
	if err := f.wait(ctx, in); err != nil {
		return nil, err
	}
	return f, nil
}

// take accepts the next group of calls, settles first, within the bounds of a
// transaction, and appends it to group; fetches that came are appended to theirs,
// not accepted yet. More says that calls are left over.
func (in *intake) take(group []*call, fetches []*fetchCall) (_ []*call, _ []*fetchCall, more bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	bytes := 0
	for _, line := range []*[]*call{&in.settles, &in.others} {
		n := 0
		for _, c := range *line {
			if len(group) >= maxGroup || bytes > 0 && bytes+c.bytes > maxGroupBytes {
				break
			}
			n++
			in.bytes -= c.bytes
			if c.accept() {
				bytes += c.bytes
				group = append(group, c)
			}
		}
		*line = drop(*line, n)
	}
	fetches = append(fetches, in.fetches...)
	in.fetches = drop(in.fetches, len(in.fetches))
	in.makeRoom()
	return group, fetches, len(in.settles)+len(in.others) > 0
}

// drop removes the first n elements and keeps the memory.
func drop[T any](line []T, n int) []T {
	rest := copy(line, line[n:])
	clear(line[rest:])
	return line[:rest]
}

func (in *intake) makeRoom() {
	close(in.room)
	in.room = make(chan struct{})
}

// refuse makes every later call return err, unless an earlier refusal stands.
func (in *intake) refuse(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.refusing == nil {
		in.refusing = err
	}
	in.makeRoom()
}

// reason is what refuse was given.
func (in *intake) reason() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.refusing
}
