package pawltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// maxJumps limits how often one Drain moves the clock.
const maxJumps = 10_000

// drain is the state of a [Drain]. Its worker uses it while it works, and the test afterwards.
type drain struct {
	jumps   int
	failure string // why the test fails, if it does
}

// jump moves the clock to the time for which jobs wait, and reports whether that was not once too often.
func (d *drain) jump(q *Queue, to time.Time, waiting []string) bool {
	if d.jumps++; d.jumps > maxJumps {
		d.failure = fmt.Sprintf("the queue does not become empty; after %d moves of its clock these jobs still wait:\n%s",
			maxJumps, strings.Join(waiting, "\n"))
		return false
	}
	q.goTo(to)
	return true
}

// Fetch is that of package memory. For the worker of a [Drain], it moves the clock if all jobs wait for a time, and
// returns [pawl.ErrEmpty] if none of them can run without a call of somebody else.
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	q.mu.Lock()
	d := q.drain
	q.mu.Unlock()
	if d == nil || r.Wait != pawl.WaitDrained {
		return q.Queue.Fetch(ctx, r)
	}
	for {
		leases, err, again := q.fetchFor(ctx, d, r)
		if !again {
			return leases, err
		}
	}
}

// fetchFor is Fetch for a Drain, until something happens.
func (q *Queue) fetchFor(ctx context.Context, d *drain, r pawl.Request) (leases []*pawl.Lease, err error, again bool) {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	q.mu.Lock()
	q.changed = stop
	q.mu.Unlock()

	now := r
	now.Wait = pawl.WaitNot
	if leases, err = q.Queue.Fetch(ctx, now); !errors.Is(err, pawl.ErrEmpty) {
		return leases, err, false
	}
	b, err := q.blocked(ctx, r)
	switch {
	case err != nil && ctx.Err() != nil: // the worker asks anew
		return nil, fmt.Errorf("%w: %w", pawl.ErrNotAccepted, ctx.Err()), false
	case err != nil:
		return nil, err, false
	case waiting.Err() != nil: // something happened since
		return nil, nil, true
	case b.all && !b.next.IsZero():
		if d.jump(q, b.next, b.lines) {
			return nil, nil, true
		}
		return nil, pawl.ErrEmpty, false
	case b.all:
		return nil, pawl.ErrEmpty, false
	}
	leases, err = q.Queue.Fetch(waiting, r)
	return leases, err, err != nil && waiting.Err() != nil && ctx.Err() == nil
}

// Resume is that of package memory.
func (q *Queue) Resume(ctx context.Context, queue string) error {
	defer q.wake()
	return q.Queue.Resume(ctx, queue)
}

// wake makes the Fetch of a Drain look again.
func (q *Queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.changed != nil {
		q.changed()
	}
}

// blocked describes the ready jobs that a request asks for, while none is leased.
type blocked struct {
	all   bool      // there are some, and each waits for a time, or for what cannot happen without a call
	next  time.Time // when something can happen: a rate, the end of a rest, or a delayed job; zero for never
	lines []string  // for the first few jobs
}

// blocked returns what keeps all ready jobs of a request from running.
func (q *Queue) blocked(ctx context.Context, r pawl.Request) (b blocked, err error) {
	stats, err := q.Stats(ctx)
	if err != nil {
		return b, err
	}
	if slices.ContainsFunc(stats.Queues, func(s pawl.QueueStats) bool { return s.Leased > 0 }) {
		return b, nil
	}
	due, delayed, err := q.delayed(ctx) // first: a job that becomes ready meanwhile is among the ready ones
	if err != nil {
		return b, err
	}
	seen := make(map[[2]string]bool) // keys, and queues, whose jobs all wait for the same
	for e, err := range q.Jobs(ctx, pawl.Filter{State: pawl.Ready}) {
		if err != nil {
			return b, err
		}
		queue, key := [2]string{e.Queue}, [2]string{e.Queue, "key " + e.Key}
		if !slices.Contains(r.Queues, e.Queue) || !slices.Contains(r.Kinds, e.Kind) || seen[queue] || seen[key] {
			continue
		}
		why, err := q.Why(ctx, e.ID)
		if err != nil || len(why) == 0 {
			return blocked{}, nil // it can run, or is gone
		}
		for _, o := range why {
			switch o.What {
			case pawl.ByQueueRate, pawl.ByQueueRest:
				seen[queue] = true
			case pawl.ByKeyRate, pawl.ByKeyRest, pawl.ByHeldKey:
				seen[key] = true
			case pawl.ByTurn, pawl.ByJobs, pawl.ByDeadJobs, pawl.ByGoneJobs:
			default:
				return blocked{}, nil // such as the end of a pause, which may still come
			}
			if !o.Until.IsZero() && (b.next.IsZero() || o.Until.Before(b.next)) {
				b.next = o.Until
			}
		}
		b.all = true
		if len(b.lines) < maxListed {
			b.lines = append(b.lines, fmt.Sprintf("  %s: %v", describe(e), why[0]))
		}
	}
	if !due.IsZero() && (b.next.IsZero() || due.Before(b.next)) {
		b.next = due
	}
	b.lines = append(b.lines, delayed...)
	return b, nil
}
