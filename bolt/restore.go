package bolt

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Restore stores effects, and jobs in the state of their envelopes, atomically. It returns when
// they are durable. Use it for jobs and effects that a list of this queue or another one has
// returned. Use Enqueue for new jobs.
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
// OnConflict and LeasedSince, and leaves its arguments unchanged. For effects the later Until
// counts. Expired effects are dropped.
//
// Restore emits [pawl.EventEnqueued] for each job, and also [pawl.EventDied] for each job that
// becomes dead during the restore. It does not count or log a job that was dead before.
//
// Errors: [pawl.ErrInvalid] for what no queue would have stored, with the index of the job or
// effect; [pawl.ErrPayloadTooLarge]; [pawl.ErrBatchTooLarge] for more than [pawl.MaxBatchJobs]
// jobs or effects, or more than [pawl.MaxBatchBytes] of payloads, headers and histories;
// [pawl.ErrConflict] if an ID is in the file or twice in the batch, or if a job and a stored
// job share a unique key and each is in a state that blocks the other. Jobs of one call do not
// block each other, since they coexisted where they came from.
func (q *Queue) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error {
	if len(jobs)+len(effects) == 0 {
		return nil
	}
	if err := driver.CheckRestore(jobs, effects, q.opts.MaxPayload); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	seq := q.seq.Add(uint64(len(jobs))) - uint64(len(jobs))
	op, bytes := newRestore(jobs, effects, q.opts.Now(), seq)
	return q.scheduler.intake.do(ctx, op, bytes)
}

// restore is the operation that stores jobs in their states, and effects.
type restore struct {
	jobs    []newJob
	effects []driver.Effect
}

// newRestore prepares jobs that passed [driver.CheckRestore]. It needs no transaction. It works on copies. Seq is the
// sequence before the first job's.
func newRestore(jobs []*pawl.Envelope, effects []driver.Effect, now time.Time, seq uint64) (op *restore, bytes int) {
	op = &restore{jobs: make([]newJob, len(jobs)), effects: effects}
	now = now.Round(0)
	for i, e := range jobs {
		j := &op.jobs[i]
		j.Envelope, j.fresh = *e, e.ID.IsZero()
		seq++
		j.Seq = seq
		driver.Arrive(&j.Envelope, now)
		j.encode()
		bytes += len(j.record) + driver.JobSize(&j.Envelope)
	}
	return op, bytes
}

// check refuses IDs and unique keys that are taken.
func (op *restore) check(t *txn) error {
	for i := range op.jobs {
		j := &op.jobs[i]
		if !j.fresh && t.jobs.Get(j.ID[:]) != nil {
			return fmt.Errorf("restore: job %d, %s: %w: the queue holds a job of this ID already", i, j.ID, pawl.ErrConflict)
		}
		if j.UniqueKey == "" || !driver.BlockedBy(&j.Envelope, driver.Arrival(&j.Envelope, t.now)) {
			continue
		}
		holder, at, taken, err := t.uniqueHolder(&j.Envelope)
		if err != nil {
			return fmt.Errorf("restore: job %d, %s: %w", i, j.ID, err)
		}
		if taken {
			return fmt.Errorf("restore: job %d, %s: %w: job %s, which is %s, has its unique key %q", i, j.ID, pawl.ErrConflict, holder.ID, at.state, j.UniqueKey)
		}
	}
	return t.bound.take(t.jobs.Tx(), sizeOf(op.jobs))
}

func (op *restore) apply(t *txn) {
	for i := range op.jobs {
		t.restore(&op.jobs[i])
	}
	for _, e := range op.effects {
		t.restoreEffect(e)
	}
}

// restore stores one job.
func (t *txn) restore(n *newJob) {
	own := n.Envelope // if the job dies here, this copy changes, and the operation may run again
	j := stored{Envelope: &own}
	t.put(t.jobs, j.ID[:], n.record)
	if n.payload != nil {
		j.apart = len(j.Payload)
		t.put(t.payloads, j.ID[:], n.payload)
	}
	for i, f := range j.History {
		number := i
		if i >= pawl.HistoryKeepHead {
			number = j.Failures - len(j.History) + i
		}
		key := historyKey(nil, j.ID, number)
		t.put(t.history, key, seal(key, appendFailure(nil, f)))
	}
	if j.Seq > t.jobs.Sequence() {
		t.fail(t.jobs.SetSequence(j.Seq))
	}
	t.restoreUnique(j, driver.Arrival(&n.Envelope, t.now))
	state := j.State
	if j.Group != "" {
		t.groups.Restore(t.others(), j.Group, driver.StandingOf(state))
	}
	j.State, j.History = "", nil
	t.prerequire(j.Envelope)
	t.keepKey(j, state)
	t.emit(pawl.Event{Type: pawl.EventEnqueued, Job: j.Envelope})
	switch state {
	case pawl.Ready:
		t.placeReady(j)
	case pawl.Delayed:
		t.place(j)
	case pawl.Leased:
		t.makeDead(j, pawl.ReasonCancelled, run{cause: "it was cancelled, and restored without its run"})
	case pawl.Dead:
		t.placeDead(j)
		t.hasEnded(j.ID, state)
	case pawl.Completed:
		t.placeCompleted(j)
		t.hasEnded(j.ID, state)
	}
}

// restoreUnique makes a job in the given state the owner of its unique key, unless another job
// blocks others with that key and this one does not.
func (t *txn) restoreUnique(j stored, state pawl.State) {
	if j.UniqueKey == "" {
		return
	}
	if _, _, taken, err := t.uniqueHolder(j.Envelope); err == nil && taken && !driver.BlockedBy(j.Envelope, state) {
		return
	}
	t.takeUnique(j)
}

// restoreEffect marks an effect as done, unless it is already done for longer or has expired.
func (t *txn) restoreEffect(e driver.Effect) {
	key := effectKey(nil, &pawl.Envelope{Kind: e.Kind, IdempotencyKey: e.Key})
	row, _ := t.effect(key) // a damaged row is rewritten
	if until := e.Until.Round(0); until.After(t.now) && until.After(row.done) {
		t.doneUntil(key, row, until)
	}
}
