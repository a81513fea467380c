package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// look runs fn on the present state of the queue: what is due has happened, even if the
// alarm has not rung yet.
func (q *Queue) look(ctx context.Context, fn func() error) error {
	if q.err != nil {
		return q.err
	}
	if !q.mu.lock(ctx) {
		return ctx.Err()
	}
	defer q.mu.Unlock()
	if q.closed {
		return pawl.ErrClosed
	}
	q.begin()
	q.catchUp()
	return fn()
}

// Stats counts the jobs of each queue in each state.
func (q *Queue) Stats(ctx context.Context) (stats pawl.Stats, err error) {
	err = q.look(ctx, func() error {
		for _, l := range q.lines {
			stats.Queues = append(stats.Queues, pawl.QueueStats{
				Name: l.name, Counts: q.countsOf(l), Paused: l.paused, Limits: l.limits, Declared: q.declared(l), Oldest: q.oldest(l), Rests: driver.Rests(l.rests[""], q.moves.Now),
			})
		}
		return nil
	})
	return stats, err
}

// Totals counts the transitions since the queue was made.
func (q *Queue) Totals() driver.Totals { return q.reporter.Totals() }

// oldest returns since when the first of the ready jobs that are not blocked is ready.
func (q *Queue) oldest(l *line) (oldest time.Time) {
	for _, j := range q.unblocked(l) {
		if oldest.IsZero() || j.NotBefore.Before(oldest) {
			oldest = j.NotBefore
		}
	}
	return oldest
}

// Job returns a job with its state, payload, and history. It returns [pawl.ErrNotFound]
// if the queue never had the job, or no longer has it.
func (q *Queue) Job(ctx context.Context, id pawl.ID) (found *pawl.Envelope, err error) {
	err = q.look(ctx, func() error {
		j, err := q.get(id)
		if err == nil {
			found = j.copy()
		}
		return err
	})
	return found, err
}

// Jobs iterates over the jobs that f chooses, with state, payload, and history, in the
// order of f. It shows the state at the beginning of the iteration.
//
// An error comes with a nil job and ends the iteration.
func (q *Queue) Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	return func(yield func(*pawl.Envelope, error) bool) {
		chosen, err := q.choose(ctx, f)
		for _, e := range chosen {
			if err = ctx.Err(); err != nil {
				break
			}
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, fmt.Errorf("list jobs: %w", err))
		}
	}
}

func (q *Queue) choose(ctx context.Context, f pawl.Filter) (chosen []*pawl.Envelope, err error) {
	if err := driver.CheckFilter(f); err != nil {
		return nil, err
	}
	err = q.look(ctx, func() error {
		for _, j := range q.sorted(f) {
			if f.Matches(&j.Envelope) {
				chosen = append(chosen, j.copy())
			}
		}
		return nil
	})
	return chosen, err
}

// sorted returns the jobs that may match a filter, in its order.
func (q *Queue) sorted(f pawl.Filter) []*job {
	state := f.State
	if f.Order == pawl.OrderCreated {
		state = ""
	}
	jobs := q.in(state)
	if f.Order == pawl.OrderDied {
		slices.SortStableFunc(jobs, byDeath)
	}
	if f.Newest {
		slices.Reverse(jobs)
	}
	return jobs
}

// in returns the jobs of a state in its order, or all jobs by their IDs, in a new
// slice.
func (q *Queue) in(state pawl.State) (jobs []*job) {
	switch state {
	case pawl.Ready:
		for _, l := range q.lines {
			jobs = append(jobs, l.ready.jobs...)
		}
		return jobs
	case pawl.Dead:
		for _, l := range q.lines {
			jobs = append(jobs, l.dead.jobs...)
		}
		return jobs
	case pawl.Delayed:
		return slices.Clone(q.delayed.jobs)
	case pawl.Leased:
		return slices.Clone(q.leased.jobs)
	case pawl.Completed:
		return slices.Clone(q.completed.jobs)
	}
	return slices.SortedFunc(maps.Values(q.jobs), func(a, b *job) int { return bytes.Compare(a.ID[:], b.ID[:]) })
}
