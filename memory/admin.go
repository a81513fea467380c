package memory

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The verbs of operators, and of the app beside its workers.

// Cancel ends a job. One that waits is dead at once. One that is leased is marked: the
// Cancelled signal of its lease fires, and however the lease ends, but for an Ack, the
// job is dead then. A job that is dead or completed gives [pawl.ErrConflict], one that
// is not there [pawl.ErrNotFound].
func (q *Queue) Cancel(ctx context.Context, id pawl.ID) error {
	return q.one(ctx, pawl.Change{Verb: pawl.VerbCancel}, id)
}

// Retry takes a dead letter back to ready. Its history stays; its attempts start
// again from 0 unless they are to be kept. A job that is not dead gives
// [pawl.ErrConflict], and so does one that is past its deadline or whose unique key
// another job has; one that is not there gives [pawl.ErrNotFound].
func (q *Queue) Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error {
	return q.one(ctx, pawl.Change{Verb: pawl.VerbRetry, KeepAttempts: keepAttempts}, id)
}

// RunNow has a delayed job wait no longer: it is ready at once, behind
// those of its priority that are ready already. A job in another state gives
// [pawl.ErrConflict], also one that is ready and waits for its idempotency key; one that is
// not there gives [pawl.ErrNotFound].
func (q *Queue) RunNow(ctx context.Context, id pawl.ID) error {
	return q.one(ctx, pawl.Change{Verb: pawl.VerbRunNow}, id)
}

// Delete removes a dead letter or the record of a completed job for good. A job in
// another state gives [pawl.ErrConflict], one that is not there [pawl.ErrNotFound].
func (q *Queue) Delete(ctx context.Context, id pawl.ID) error {
	return q.one(ctx, pawl.Change{Verb: pawl.VerbDelete}, id)
}

// Pause has a queue give no job to any fetch until [Queue.Resume]. All else goes on.
// The queue need not have had a job.
func (q *Queue) Pause(ctx context.Context, queue string) error {
	if err := driver.CheckQueue(queue); err != nil {
		return err
	}
	return q.do(ctx, func() error {
		q.line(queue).paused = true
		return nil
	})
}

// Resume ends the pause of a queue, if there is one.
func (q *Queue) Resume(ctx context.Context, queue string) error {
	if err := driver.CheckQueue(queue); err != nil {
		return err
	}
	return q.do(ctx, func() error {
		if l := q.find(queue); l != nil {
			l.paused = false
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
