package sqlite

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// sqlRestoreEffect notes that an effect is done. The later time counts.
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
// Errors: those of [driver.CheckRestore]; [pawl.ErrConflict] if the queue has a job of that ID, or
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
	arrived := make([]*job, len(op.jobs))
	for i, given := range op.jobs {
		j := &job{Envelope: *given}
		driver.Arrive(&j.Envelope, t.now)
		if t.get(j.ID) != nil {
			return fmt.Errorf("restore: job %d, %s: %w: the queue holds a job of this ID already", i, j.ID, pawl.ErrConflict)
		}
		if id, state, taken := t.taken(j); taken && driver.BlockedBy(&j.Envelope, driver.Arrival(&j.Envelope, t.now)) {
			return fmt.Errorf("restore: job %d, %s: %w: job %s, which is %s, has its unique key %q", i, j.ID, pawl.ErrConflict, id, state, j.UniqueKey)
		}
		arrived[i] = j
	}
	for _, j := range arrived {
		t.restore(j)
	}
	for _, e := range op.effects {
		if e.Until.After(t.now) {
			t.exec(sqlRestoreEffect, []byte(e.Kind+"\x00"+e.Key), nanos(e.Until))
		}
	}
	return nil
}

// taken returns the job that keeps others of the unique key of j out, if there is one.
func (t *txn) taken(j *job) (pawl.ID, pawl.State, bool) {
	id, state := t.holder(&j.Envelope)
	return id, state, state != "" && driver.BlockedBy(&j.Envelope, state)
}

// restore stores a job that has arrived.
func (t *txn) restore(j *job) {
	t.number(j)
	if _, _, taken := t.taken(j); !taken || driver.BlockedBy(&j.Envelope, driver.Arrival(&j.Envelope, t.now)) {
		t.hold(j)
	}
	state := j.State
	j.State = ""
	t.emit(j, pawl.Event{Type: pawl.EventEnqueued})
	switch state {
	case pawl.Delayed:
		t.place(j)
	case pawl.Leased:
		t.makeDead(j, pawl.ReasonCancelled, pawl.Event{Cause: "it was cancelled, and restored without its run"})
	default:
		t.put(j, state)
	}
	if state == pawl.Completed {
		t.fallsDue(j.Completed.Add(j.Retain))
	}
}
