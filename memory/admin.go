package memory

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The verbs of operators, and of the app beside its workers.

// Cancel ends a job. A waiting job becomes dead at once. For a leased job, the Cancelled signal
// of its lease fires, and when the lease ends, the job becomes dead unless it was acked. Cancel
// returns [pawl.ErrConflict] for a dead or completed job, and [pawl.ErrNotFound] for an unknown
// one.
func (q *Queue) Cancel(ctx context.Context, id pawl.ID) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbCancel}, id)
}

// Retry makes a dead job ready. Its history stays. Its count of attempts restarts at 0 unless
// keepAttempts is set. Retry returns [pawl.ErrConflict] for a job that is not dead, that is past
// its deadline, or whose unique key another job has. It returns [pawl.ErrNotFound] for an unknown
// job.
func (q *Queue) Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbRetry, KeepAttempts: keepAttempts}, id)
}

// RunNow makes a delayed job ready at once, after the ready jobs of its priority. It returns
// [pawl.ErrConflict] for a job in another state, and [pawl.ErrNotFound] for an unknown one.
func (q *Queue) RunNow(ctx context.Context, id pawl.ID) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbRunNow}, id)
}

// Delete removes a dead job or the record of a completed job for good. It returns
// [pawl.ErrConflict] for a job in another state, and [pawl.ErrNotFound] for an unknown one.
func (q *Queue) Delete(ctx context.Context, id pawl.ID) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbDelete}, id)
}

// Pause stops fetches from a queue until [Queue.Resume]. Everything else goes on. A queue without
// jobs can be paused, too.
func (q *Queue) Pause(ctx context.Context, queue string) error {
	if err := driver.CheckQueue(queue); err != nil {
		return err
	}
	return q.do(ctx, func() error {
		q.line(queue).paused = true
		return nil
	})
}

// Resume ends the pause of a queue, and its rest, if there is one.
func (q *Queue) Resume(ctx context.Context, queue string) error {
	if err := driver.CheckQueue(queue); err != nil {
		return err
	}
	return q.do(ctx, func() error {
		if l := q.find(queue); l != nil {
			l.paused = false
			delete(l.rests, "")
		}
		return nil
	})
}

// get finds the job of an ID.
func (q *Queue) get(id pawl.ID) (*job, error) {
	if j, ok := q.jobs[id]; ok {
		return j, nil
	}
	return nil, fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
}
