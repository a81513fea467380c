package bolt

import (
	"context"
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
	came atomic.Int64  // calls and fetches so far

	mu       sync.Mutex
	settles  []*call // and extends; taken before the others, for whom they free what they wait for
	others   []*call
	fetches  []*fetchCall
	notes    []note
	urgent   bool          // the last group had none of the others, who waited
	updated  bool          // the last group was an update
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
	lookout lookout
	jobs    []*fetched
	at      time.Time // of the transaction that served it, by the wall clock
	durable time.Time // when that was durable, on monotonic time
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
		return pawl.NotAccepted(ctx)
	}
	<-c.done
	return c.err
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
		return pawl.NotAccepted(ctx)
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
			case *settlements, *condemn, *extend:
				in.settles = append(in.settles, c)
			default:
				in.others = append(in.others, c)
			}
			in.bytes += c.bytes
			in.mu.Unlock()
			in.came.Add(1)
			in.ring()
			return nil
		}
		room := in.room
		in.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return pawl.NotAccepted(ctx)
		}
	}
}

// fetch queues a fetch and waits for its jobs.
func (in *intake) fetch(ctx context.Context, r pawl.Request) (*fetchCall, error) {
	if ctx.Err() != nil {
		return nil, pawl.NotAccepted(ctx)
	}
	f := &fetchCall{call: call{done: make(chan struct{})}, request: r, lookout: newLookout(&r)}
	in.mu.Lock()
	if in.refusing != nil {
		defer in.mu.Unlock()
		return nil, in.refusing
	}
	in.fetches = append(in.fetches, f)
	in.mu.Unlock()
	in.came.Add(1)
	in.ring()
	if err := f.wait(ctx, in); err != nil {
		return nil, err
	}
	return f, nil
}

// take accepts the next group of calls, settles first, within the bounds of a
// transaction, and appends it to group; fetches that came are appended to theirs,
// not accepted yet. More says that something is left to do.
//
// An update is a group by itself. So that nobody waits for ever, the group behind one is
// none, if only for the fetches and chores, and others whom settles left no room go first
// the next time.
func (in *intake) take(group []*call, fetches []*fetchCall) (_ []*call, _ []*fetchCall, more bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	lines := []*[]*call{&in.settles, &in.others}
	if in.urgent {
		lines = lines[1:]
	}
	behind := in.updated
	in.updated = false
	bytes, n := 0, 0
	for _, line := range lines {
		n = 0
		for _, c := range *line {
			if len(group) >= maxGroup || bytes > 0 && bytes+c.bytes > maxGroupBytes {
				break
			}
			_, alone := c.op.(*update)
			if alone && (behind || len(group) > 0) {
				break
			}
			n++
			in.bytes -= c.bytes
			if c.accept() {
				bytes += c.bytes
				group = append(group, c)
				if alone {
					in.updated = true
					break
				}
			}
		}
		*line = drop(*line, n)
	}
	in.urgent = n == 0 && len(in.others) > 0
	fetches = append(fetches, in.fetches...)
	in.fetches = drop(in.fetches, len(in.fetches))
	in.makeRoom()
	return group, fetches, in.updated || len(in.settles)+len(in.others) > 0
}

// waiting is how many calls wait to be looked at by the scheduler. Fetches that it has
// looked at wait for jobs, not for it.
func (in *intake) waiting() (n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, line := range [...][]*call{in.settles, in.others} {
		for _, c := range line {
			if c.stage.Load() == offered {
				n++
			}
		}
	}
	for _, f := range in.fetches {
		if f.stage.Load() == offered {
			n++
		}
	}
	return n
}

// note is what a transaction of the app's did to leases and queues.
type note struct {
	ended, cancelled []holding
	renewed          map[pawl.ID]bool
	changed          []news
}

// note leaves a note for the scheduler.
func (in *intake) note(n note) {
	in.mu.Lock()
	in.notes = append(in.notes, n)
	in.mu.Unlock()
	in.ring()
}

func (in *intake) takeNotes() (notes []note) {
	in.mu.Lock()
	defer in.mu.Unlock()
	notes, in.notes = in.notes, nil
	return notes
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
