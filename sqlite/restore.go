package sqlite

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// sqlRestoreEffect stores that an effect is done. The later time counts.
const sqlRestoreEffect = `INSERT INTO pawl_effect (name, done_until) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET done_until = max(done_until, excluded.done_until)`

// Restore stores effects, and jobs in the state of their envelopes, atomically. Use it for jobs and
// effects that a list of this queue or another one has returned. Use Enqueue for new jobs.
//
// A job keeps its attempts, crashes, history, the time and reason of its death, and the end of its
// retention. It also keeps its State, with these exceptions:
//
//   - A leased job becomes ready, in its old place. No crash is counted. A waiting or leased job
//     that was cancelled becomes dead.
//   - A delayed job whose time has come becomes ready. A waiting job whose deadline has passed
//     becomes dead, and a completed record whose retention has ended is removed soon.
//   - A ready job with a NotBefore in the future counts as ready from now on.
//
// A job with a zero ID gets an ID. A job without Queue, Origin, Created or NotBefore gets what an
// enqueue would set. Each job gets a sequence, in the order of jobs. Restore ignores Delay,
// OnConflict and LeasedSince, and leaves its arguments unchanged. For effects the later Until counts.
// Restore emits [pawl.EventEnqueued] for each job, and also [pawl.EventDied] for each job that becomes
// dead during the restore.
//
// Errors: those of driver.CheckRestore; [pawl.ErrConflict] if the queue has a job of that ID, or
// if a job and a stored job share a unique key and each is in a state that blocks the other. Jobs of
// one call do not block each other, since they coexisted where they came from.
func (q *Queue) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error {
	if len(jobs)+len(effects) == 0 {
		return nil
	}
	if err := driver.SupportsRestore(abilities, jobs, effects); err != nil {
		return err
	}
	if err := driver.CheckRestore(jobs, effects, q.opts.MaxPayload); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return q.submit(ctx, &restore{jobs, effects})
}

// restore is a call of Restore.
type restore struct {
	jobs    []*pawl.Envelope
	effects []driver.Effect
}

func (op *restore) apply(t *txn) error {
	arrived, err := t.Arrive(op.jobs)
	if err != nil {
		return err
	}
	for _, j := range arrived {
		t.Restore(j)
	}
	for _, e := range op.effects {
		if e.Until.After(t.Now) {
			t.exec(sqlRestoreEffect, []byte(e.Kind+"\x00"+e.Key), nanos(e.Until))
		}
	}
	return nil
}
