package bolt

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Operations on jobs and queues for operators and apps.

// Retry changes a dead job to ready. Its history stays. Its attempts start again from 0 unless
// keepAttempts is set. Retry returns [pawl.ErrConflict] if the job is not dead, its deadline has
// passed, or another job has its unique key. It returns [pawl.ErrNotFound] if the job does not
// exist.
func (q *Queue) Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbRetry, KeepAttempts: keepAttempts}, id)
}

// Cancel ends a job. A waiting job becomes dead. A leased job is durably marked as cancelled,
// and its lease gets a signal that makes a worker cancel the handler's context. If the attempt
// succeeds anyway, the job is acked; any other end of the lease makes the job dead. Cancel
// returns [pawl.ErrConflict] for a dead or completed job and [pawl.ErrNotFound] if the job does
// not exist.
func (q *Queue) Cancel(ctx context.Context, id pawl.ID) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbCancel}, id)
}

// RunNow makes a delayed job ready immediately, behind the ready jobs of its priority. A waiting
// retry keeps its counters, and observers see the time that it really waited. A job whose deadline
// has passed becomes dead. RunNow returns [pawl.ErrConflict] for a job in another state, including
// a ready job that waits for its idempotency key, and [pawl.ErrNotFound] if the job does not exist.
func (q *Queue) RunNow(ctx context.Context, id pawl.ID) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbRunNow}, id)
}

// Delete removes a dead job or a completed record permanently. It returns [pawl.ErrConflict]
// for a job in another state, and [pawl.ErrNotFound] if the job does not exist. For a dead job
// with a damaged or missing record it scans all dead jobs. For missing records it scans at most
// once a second, so that many unknown IDs cost one scan.
func (q *Queue) Delete(ctx context.Context, id pawl.ID) error {
	return driver.ChangeOne(ctx, q.Change, pawl.Change{Verb: pawl.VerbDelete}, id)
}

// Pause stops all fetching from a queue until [Queue.Resume], even across restarts. Leased jobs
// continue, and new jobs are accepted. A queue may be paused before its first job.
func (q *Queue) Pause(ctx context.Context, queue string) error {
	return q.setPaused(ctx, queue, true)
}

// Resume ends a Pause, and a rest of the queue that [pawl.Throttle] began. It does nothing if there is neither.
func (q *Queue) Resume(ctx context.Context, queue string) error {
	return q.setPaused(ctx, queue, false)
}

func (q *Queue) setPaused(ctx context.Context, queue string, paused bool) error {
	if err := driver.CheckQueue(queue); err != nil {
		return err
	}
	return q.do(ctx, &pause{queue: queue, paused: paused})
}
