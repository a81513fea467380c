package pawltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

// Fetch is that of package memory. [Drain] learns from it which jobs a worker takes.
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	q.mu.Lock()
	q.fetched = &pawl.Request{Queues: slices.Clone(r.Queues), Kinds: slices.Clone(r.Kinds)}
	q.mu.Unlock()
	q.wake()
	return q.Queue.Fetch(ctx, r)
}

// takes reports whether the worker of a Drain takes a job.
func takes(r *pawl.Request, e *pawl.Envelope) bool {
	return r != nil && slices.Contains(r.Queues, e.Queue) && slices.Contains(r.Kinds, e.Kind)
}

// wake makes a Drain look at the queue.
func (q *Queue) wake() {
	select {
	case q.changed <- struct{}{}:
	default: // it will look
	}
}

// pass makes w run jobs until none that it takes is ready or leased, or none of these can run without a call
// of somebody else. If they wait for a time, it calls jump with it.
func (q *Queue) pass(t testing.TB, w *worker.Worker, jump func(to time.Time, waiting []string)) error {
	t.Helper()
	q.mu.Lock()
	q.fetched = nil
	q.mu.Unlock()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- w.Drain(ctx, pawl.WaitDrained)
	}()
	defer func() {
		stop()
		for range ended { // also if the test fails here
		}
	}()
	for {
		select {
		case err := <-ended:
			return err
		case <-q.changed:
		}
		for b := q.blocked(t); b.all; b = q.blocked(t) {
			next, lines := q.delayed(t)
			if next.IsZero() || !b.next.IsZero() && b.next.Before(next) {
				next = b.next
			}
			if !next.IsZero() {
				jump(next, append(b.lines, lines...))
				continue
			}
			if b.waits {
				break
			}
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) || t.Context().Err() != nil {
				return err
			}
			return nil
		}
	}
}

// blocked describes the ready jobs that a worker takes, while it runs none.
type blocked struct {
	all   bool      // there are some, and none can run now
	waits bool      // one of them waits for something that may still happen, such as the end of a pause
	next  time.Time // when the first can run, by its rate or the end of a rest; zero for none
	lines []string  // for each of the first few
}

// blocked returns what keeps all ready jobs of the worker from running.
func (q *Queue) blocked(t testing.TB) blocked {
	t.Helper()
	q.mu.Lock()
	fetched, events := q.fetched, q.events
	q.mu.Unlock()
	b := q.obstacles(t, fetched)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.events != events {
		return blocked{} // a job moved meanwhile
	}
	return b
}

func (q *Queue) obstacles(t testing.TB, fetched *pawl.Request) (b blocked) {
	t.Helper()
	stats, err := q.Stats(t.Context())
	if err != nil {
		t.Fatalf("pawltest: drain: %v", err)
	}
	for _, each := range stats.Queues {
		if each.Leased > 0 {
			return blocked{}
		}
	}
	seen := make(map[[2]string]bool) // queues and keys that keep all their jobs from running
	for e, err := range q.Jobs(t.Context(), pawl.Filter{State: pawl.Ready}) {
		if err != nil {
			t.Fatalf("pawltest: drain: %v", err)
		}
		key := [2]string{e.Queue, e.Key}
		if !takes(fetched, e) || seen[key] {
			continue
		}
		why, err := q.Why(t.Context(), e.ID)
		if err != nil || len(why) == 0 {
			return blocked{} // it can run, or is gone
		}
		b.all = true
		for _, o := range why {
			switch o.What {
			case pawl.ByQueueRate, pawl.ByQueueRest, pawl.ByKeyRate, pawl.ByKeyRest:
				if b.next.IsZero() || o.Until.Before(b.next) {
					b.next = o.Until
				}
				seen[key] = true
			case pawl.ByHeldKey:
				seen[key] = true
			case pawl.ByTurn, pawl.ByJobs, pawl.ByDeadJobs, pawl.ByGoneJobs:
			default:
				b.waits = true
			}
		}
		if len(b.lines) < maxListed {
			b.lines = append(b.lines, fmt.Sprintf("  %s: %v", describe(e), why[0]))
		}
	}
	return b
}
