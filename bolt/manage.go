package bolt

import (
	"context"

	"github.com/gopawl/pawl"
)

// What operators and apps do with jobs and queues, besides running them.

// Retry takes a dead letter back to ready. Its history stays; its attempts start
// again from 0 unless they are to be kept. A job that is not dead gives
// [pawl.ErrConflict], and so does one whose deadline has passed or whose unique key
// another has; one that is not there gives [pawl.ErrNotFound].
func (q *Queue) Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error {
	return q.one(ctx, pawl.Change{Verb: pawl.VerbRetry, KeepAttempts: keepAttempts}, id)
}

// Cancel ends a job. One that waits becomes a dead letter. One that is leased gets a
// durable mark, and its lease a signal, upon which a worker ends the handler's context:
// when the run succeeds nevertheless the job is acked, whatever else ends the lease
// makes it a dead letter. A job that is dead or completed gives [pawl.ErrConflict], one
// that is not there [pawl.ErrNotFound].
func (q *Queue) Cancel(ctx context.Context, id pawl.ID) error {
	return q.one(ctx, pawl.Change{Verb: pawl.VerbCancel}, id)
}

// RunNow has a delayed job wait no longer: it is ready at once, as if its
// time had come now, in the order behind those of its priority that are ready already. A
// retry that waits keeps what it counted, and the time that it has waited is what is
// observed. A job whose deadline has passed dies. A job in another state gives
// [pawl.ErrConflict], also one that is ready and waits for its idempotency key; one that is
// not there gives [pawl.ErrNotFound].
func (q *Queue) RunNow(ctx context.Context, id pawl.ID) error {
	return q.one(ctx, pawl.Change{Verb: pawl.VerbRunNow}, id)
}

// Delete removes a dead letter or a completed record for good. A job in another state
// gives [pawl.ErrConflict], one that is not there [pawl.ErrNotFound]. A dead letter that
// is damaged, or whose record is missing, is looked for among all dead letters: for the
// latter no more than once a second, so that many IDs that are nowhere cost one look.
func (q *Queue) Delete(ctx context.Context, id pawl.ID) error {
	return q.one(ctx, pawl.Change{Verb: pawl.VerbDelete}, id)
}

// Pause stops all fetching from a queue until [Queue.Resume], also over a restart.
// Jobs that are leased go on, and new ones come in. A queue may be paused before its
// first job.
func (q *Queue) Pause(ctx context.Context, queue string) error {
	return q.setPaused(ctx, queue, true)
}

// Resume ends what Pause began. A queue that is not paused stays as it is.
func (q *Queue) Resume(ctx context.Context, queue string) error {
	return q.setPaused(ctx, queue, false)
}

func (q *Queue) setPaused(ctx context.Context, queue string, paused bool) error {
	if err := pawl.ValidQueue(queue); err != nil {
		return err
	}
	return q.do(ctx, &pause{queue: queue, paused: paused})
}
