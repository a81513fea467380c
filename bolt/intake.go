package bolt

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Limits on what may wait for the scheduler. A caller that exceeds them waits for room.
const (
	maxWaiting      = 8192
	maxWaitingBytes = 128 << 20

	maxGroup      = 4096     // operations of one transaction
	maxGroupBytes = 32 << 20 // the bytes of those operations, unless a single one has more
)

// intake is where callers leave operations for the scheduler.
type intake struct {
	bell chan struct{} // capacity 1: there is something to look at
	came atomic.Int64  // number of calls and fetches so far

	mu       sync.Mutex
	settles  []*call // settles and extends; taken first, since they free what other calls wait for
	others   []*call
	fetches  []*fetchCall
	notes    []note
	renewals []map[uint64]bool // leases that transactions of the app hold, by token
	urgent   bool              // the last group had no room for others, so those go first
	updated  bool              // the last group was an update
	bytes    int               // size of settles and others
	room     chan struct{}     // closed when there is room again
	refusing error             // the error for new calls; nil while the queue is open
}

func newIntake() *intake {
	return &intake{bell: make(chan struct{}, 1), room: make(chan struct{})}
}

// call is one operation that passes through the scheduler.
type call struct {
	op    operation
	bytes int
	stage atomic.Int32
	err   error
	done  chan struct{} // closed when the call is answered
}

// fetchCall is a fetch that waits for jobs.
type fetchCall struct {
	call
	request   pawl.Request
	watchList watchList
	jobs      []*fetched
	at        time.Time // wall-clock time of the transaction that served it
	durable   time.Time // monotonic time when that transaction became durable
	served    bool      // served by the current transaction; answered once that is durable
}

// The stages of a call. Only the scheduler accepts a call, and only the caller withdraws it.
// The first of the two wins: an accepted call is carried out even if its context ends, and a
// withdrawn call never is.
const (
	offered int32 = iota
	accepted
	withdrawn
)

// accept marks the call as accepted. Only the scheduler calls it. The scheduler may accept a
// call twice.
func (c *call) accept() bool {
	return c.stage.CompareAndSwap(offered, accepted) || c.stage.Load() == accepted
}

func (c *call) answer(err error) {
	c.err = err
	close(c.done)
}

// wait returns the answer, or ErrNotAccepted if ctx ends while the call can still be withdrawn.
func (c *call) wait(ctx context.Context, in *intake) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	if c.stage.CompareAndSwap(offered, withdrawn) {
		in.ring() // let the scheduler drop it
		return driver.NotAccepted(ctx)
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

// do hands op to the scheduler and waits until op is durable or refused.
func (in *intake) do(ctx context.Context, op operation, bytes int) error {
	c := &call{op: op, bytes: bytes, done: make(chan struct{})}
	if err := in.offer(ctx, c); err != nil {
		return err
	}
	return c.wait(ctx, in)
}

// offer submits a call. It waits for room first.
func (in *intake) offer(ctx context.Context, c *call) error {
	if ctx.Err() != nil {
		return driver.NotAccepted(ctx)
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
			case *settlements, *abandonDamaged, *extend:
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
			return driver.NotAccepted(ctx)
		}
	}
}

// fetch submits a fetch and waits for its jobs.
func (in *intake) fetch(ctx context.Context, r pawl.Request) (*fetchCall, error) {
	if ctx.Err() != nil {
		return nil, driver.NotAccepted(ctx)
	}
	f := &fetchCall{call: call{done: make(chan struct{})}, request: r, watchList: newWatchList(&r)}
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

// take accepts the next group of calls, settles first, within the limits of a transaction, and
// appends it to group. It appends new fetches to theirs, not yet accepted. If more is true,
// there is more to take.
//
// An update is a group by itself. No call may wait forever. So the group after an update is not
// an update, even if it has only fetches and maintenance. And if the settles leave no room for
// the calls in others, those calls go first the next time.
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

// waiting returns how many calls the scheduler has not looked at. Fetches that it has looked at
// wait for jobs and do not count.
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

// note is what an app's transaction changed about leases and queues.
type note struct {
	ended, cancelled, cleared []holding
	renewed                   map[uint64]bool
	changed                   []news
	leftBlocked               bool // see [txn]
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

// renew renews leases that an app's transaction holds, whether it commits or not: their holder is alive. The scheduler
// may begin a transaction right after the app's commit, before a function called after the commit tells it anything.
// After a rollback nothing wakes the scheduler, so a lease may last until one lease after its old end.
func (in *intake) renew(tokens map[uint64]bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.renewals = append(in.renewals, tokens)
}

func (in *intake) takeRenewals() (renewals []map[uint64]bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	renewals, in.renewals = in.renewals, nil
	return renewals
}

// drop removes the first n elements in place.
func drop[T any](line []T, n int) []T {
	rest := copy(line, line[n:])
	clear(line[rest:])
	return line[:rest]
}

func (in *intake) makeRoom() {
	close(in.room)
	in.room = make(chan struct{})
}

// refuse makes every later call return err, unless the queue refuses calls already.
func (in *intake) refuse(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.refusing == nil {
		in.refusing = err
	}
	in.makeRoom()
}

// reason returns the error passed to refuse.
func (in *intake) reason() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.refusing
}
