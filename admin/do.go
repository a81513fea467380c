package admin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
)

// doAtOnce is how many jobs of one Do are on their way at a time. Those share commits.
const doAtOnce = 256

// do carries out an action. An ID that is named twice is acted on once, and both get its
// result.
func do(ctx context.Context, q *bolt.Queue, a Action, ids []pawl.ID) ([]error, error) {
	act, err := a.on(q)
	if err != nil {
		return nil, err
	}
	if len(ids) > MaxIDs {
		return nil, invalid("ids", "%d of them, one call takes %d", len(ids), MaxIDs)
	}
	first := make(map[pawl.ID]int, len(ids)) // where an ID is named first
	var todo []int
	for i, id := range ids {
		if _, again := first[id]; !again {
			first[id] = i
			todo = append(todo, i)
		}
	}
	results := make([]error, len(ids))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(todo), doAtOnce) {
		wg.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(todo)); n = next.Add(1) - 1 {
				i := todo[n]
				results[i] = act(ctx, ids[i])
			}
		})
	}
	wg.Wait()
	for i, id := range ids {
		results[i] = results[first[id]]
		if stopped(results[i]) {
			return nil, fmt.Errorf("%s of job %s: %w", a.Verb, id, results[i])
		}
	}
	return results, nil
}

// stopped reports whether an error is not about one job: the caller went away, or the queue
// does nothing any more.
func stopped(err error) bool {
	for _, target := range []error{
		pawl.ErrNotAccepted, pawl.ErrUnknownOutcome, pawl.ErrPoisoned, pawl.ErrClosed, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// on is what the action does to one job of q.
func (a Action) on(q *bolt.Queue) (func(context.Context, pawl.ID) error, error) {
	switch a.Verb {
	case Retry:
		return func(ctx context.Context, id pawl.ID) error { return q.Retry(ctx, id, a.KeepAttempts) }, nil
	case Cancel:
		return func(ctx context.Context, id pawl.ID) error { return cancel(ctx, q, id, a.Force) }, nil
	case Delete:
		return q.Delete, nil
	case RunNow:
		return q.RunNow, nil
	case Forward:
		to := a.Queue
		if to == "" {
			to = dlq.FailedJobs
		}
		if err := pawl.ValidQueue(to); err != nil {
			return nil, err
		}
		return func(ctx context.Context, id pawl.ID) error { return forward(ctx, q, id, to) }, nil
	}
	return nil, invalid("verb", "%q is none of %s, %s, %s, %s, %s", clip(string(a.Verb)), Retry, Cancel, Delete, RunNow, Forward)
}

// forward puts a job of another queue in the place of a dead letter.
func forward(ctx context.Context, q *bolt.Queue, id pawl.ID, to string) error {
	letter, err := dlq.Inspect(ctx, q, id)
	if err != nil {
		return err
	}
	if letter.Queue == to {
		return fmt.Errorf("job %s: %w: it is a dead letter of queue %q already; forward it to another queue, or retry it", id, pawl.ErrConflict, to)
	}
	return dlq.ToQueue(inPlace{q}, to).Store(ctx, letter)
}

// inPlace is a target of dead letters that are in it already. A letter that somebody else
// removes meanwhile is not brought back.
type inPlace struct{ q *bolt.Queue }

func (p inPlace) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) error {
	for _, job := range jobs {
		if err := p.q.Transfer(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

func (p inPlace) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	return p.q.Job(ctx, id)
}
