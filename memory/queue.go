package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// Queue is a job queue in memory. It implements [pawl.Queue]; its methods may be
// called from any goroutine.
type Queue struct {
	opts Options
	err  error // what is wrong with the options; every call returns it

	ringing sync.WaitGroup // one while the alarm is set or rings

	mu      sync.Mutex // guards what follows
	closed  bool
	now     time.Time // the wall clock at the beginning of the transition under way
	seq     uint64    // the last enqueue sequence that was given out
	tokens  uint64    // the last token that was given out
	turns   uint64    // the last turn that a queue had
	jobs    map[pawl.ID]*job
	lines   []*line // in the order of their first job
	delayed list
	parked  list
	leased  list
	waiting []*fetch    // in the order of their coming
	alarm   *time.Timer // nil when nothing will fall due
	still   bool        // the alarm rings, and the wall clock stood still since it was set
}

var _ pawl.Queue = (*Queue)(nil)

// line is one of the named queues in a Queue.
type line struct {
	name   string
	ready  list
	dead   list
	counts Counts // of its jobs, whichever list they are in
	turn   uint64 // its last one
}

// New makes an empty queue. A bad option is reported by every call, as a
// [*pawl.InvalidError].
func New(opts *Options) *Queue {
	q := &Queue{
		jobs:    make(map[pawl.ID]*job),
		delayed: list{compare: byDue},
		parked:  list{compare: byKind},
		leased:  list{compare: byExpiry},
	}
	if q.opts, q.err = opts.withDefaults(); q.err != nil {
		q.err = fmt.Errorf("queue in memory: %w", q.err)
	}
	return q
}

// Close stops the queue: fetches that wait get [pawl.ErrClosed], and so does every
// later call. When it returns nothing of the queue runs, and its jobs are out of
// reach.
func (q *Queue) Close() error {
	q.mu.Lock()
	q.closed = true
	q.unsetAlarm()
	for _, f := range q.waiting {
		f.answer(pawl.ErrClosed)
	}
	q.waiting = nil
	q.mu.Unlock()
	q.ringing.Wait()
	return nil
}

// do makes one transition: the caller's own change, unless ctx has ended, and after
// it all that is due anyway. A change that returns an error has changed nothing.
//
// The change comes first: a holder whose lease has expired, but was not taken back
// yet, may still settle. The job ran once, and this way it stays at that.
func (q *Queue) do(ctx context.Context, change func() error) error {
	switch {
	case q.err != nil:
		return q.err
	case ctx.Err() != nil:
		return notAccepted(ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return pawl.ErrClosed
	}
	q.begin()
	err := change()
	q.catchUp()
	return err
}

func notAccepted(ctx context.Context) error {
	err := fmt.Errorf("%w: %w", pawl.ErrNotAccepted, ctx.Err())
	if cause := context.Cause(ctx); cause != ctx.Err() {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// begin reads the wall clock, once for the whole transition. Without its monotonic
// part a time follows the clock when that is set.
func (q *Queue) begin() { q.now = q.opts.Now().Round(0) }

// settle ends a lease. How changes the job, whose lease is over, and puts it in the
// list of its next state. No settle leaves a crash behind.
func (q *Queue) settle(ctx context.Context, l *pawl.Lease, how func(*job)) error {
	return q.do(ctx, func() error {
		j, err := q.held(l)
		if err != nil {
			return err
		}
		q.endLease(j)
		j.Crashes = 0
		how(j)
		return nil
	})
}

// held finds the job of a lease, if its token is the one that counts.
func (q *Queue) held(l *pawl.Lease) (*job, error) {
	j, ok := q.jobs[l.ID]
	if !ok || j.State != pawl.Leased || j.token != l.Token {
		return nil, fmt.Errorf("job %s: %w", l.ID, pawl.ErrLeaseLost)
	}
	return j, nil
}

// Ack implements [pawl.Queue].
func (q *Queue) Ack(ctx context.Context, l *pawl.Lease) error {
	return q.settle(ctx, l, func(j *job) { delete(q.jobs, j.ID) })
}

// Nack implements [pawl.Queue].
func (q *Queue) Nack(ctx context.Context, l *pawl.Lease, delay time.Duration, cause error) error {
	text := text(cause)
	return q.settle(ctx, l, func(j *job) {
		q.failed(j, text)
		q.schedule(j, delay)
	})
}

// Abandon implements [pawl.Queue].
func (q *Queue) Abandon(ctx context.Context, l *pawl.Lease, reason pawl.Reason, cause error) error {
	text := text(cause)
	return q.settle(ctx, l, func(j *job) {
		q.failed(j, text)
		q.bury(j, reason, text)
	})
}

// Release implements [pawl.Queue].
func (q *Queue) Release(ctx context.Context, l *pawl.Lease) error {
	return q.settle(ctx, l, func(j *job) { q.put(j, pawl.Ready) })
}

// Snooze implements [pawl.Queue].
func (q *Queue) Snooze(ctx context.Context, l *pawl.Lease, delay time.Duration) error {
	return q.settle(ctx, l, func(j *job) { q.schedule(j, delay) })
}

// Park implements [pawl.Queue].
func (q *Queue) Park(ctx context.Context, l *pawl.Lease) error {
	return q.settle(ctx, l, func(j *job) { q.put(j, pawl.Parked) })
}

// Unpark implements [pawl.Queue].
func (q *Queue) Unpark(ctx context.Context, kinds ...string) (moved int, err error) {
	for _, kind := range kinds {
		if err := pawl.ValidKind(kind); err != nil {
			return 0, err
		}
	}
	err = q.do(ctx, func() error {
		moved = q.unpark(kinds)
		return nil
	})
	return moved, err
}

// Extend implements [pawl.Queue].
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	err = q.do(ctx, func() error {
		for _, l := range leases {
			if j, err := q.held(l); err != nil {
				lost = append(lost, l)
			} else {
				q.take(j)
				q.lease(j)
			}
		}
		return nil
	})
	return lost, err
}

// Reap implements [pawl.Queue].
func (q *Queue) Reap(ctx context.Context) (reaped int, err error) {
	err = q.do(ctx, func() error {
		reaped = q.reap()
		return nil
	})
	return reaped, err
}

// Retry takes a dead letter back to ready. Its history stays; its attempts start
// again from 0 unless they are to be kept. A job that is not dead gives
// [pawl.ErrConflict], one that is not there [pawl.ErrNotFound].
func (q *Queue) Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error {
	return q.do(ctx, func() error {
		j, ok := q.jobs[id]
		switch {
		case !ok:
			return fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
		case j.State != pawl.Dead:
			return fmt.Errorf("job %s: %w: it is %s, not dead", id, pawl.ErrConflict, j.State)
		}
		q.revive(j, keepAttempts)
		return nil
	})
}

func text(cause error) string {
	if cause == nil {
		return ""
	}
	return cause.Error()
}
