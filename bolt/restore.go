package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// Restore stores jobs as they stand in their envelopes, and effects, all or none; it
// returns when they are durable. It is for what [Queue.List] and [Queue.Effects] have read
// from this file or another one, so that nothing is lost on the way; new jobs are enqueued.
//
// What a job has counted stays: attempts, crashes, history, the time and reason of its death,
// the end of its retention. So does its State, but for these:
//
//   - A leased job is ready, in its old place; its process is elsewhere, and no crash is
//     counted. One that was cancelled, and waits or is leased, is dead.
//   - A delayed job whose time has come is ready. One that waits and whose deadline has
//     passed is dead, and a completed record whose retention has ended is removed soon.
//   - A ready job is ready since now where its NotBefore lies in the future.
//
// A job whose ID is zero gets one, and one without Queue, Origin, Created or NotBefore what
// an enqueue would give it; these and Seq, which is given anew in the order of jobs, are
// filled in, in place. Delay, OnConflict, Existing and LeasedSince are not looked at. Of
// effects the later Until counts; those of the past are dropped.
//
// Each job is told as [pawl.EventEnqueued], whatever its state: a dead letter that comes as
// one does not die again, is counted nowhere and logged nowhere. Only what dies by being
// restored, as above, is told as [pawl.EventDied] too.
//
// Errors: [pawl.ErrInvalid] for what no queue would have stored, with the index of the job or
// effect, [pawl.ErrPayloadTooLarge], [pawl.ErrBatchTooLarge] for more than
// [pawl.MaxBatchJobs] of either or more than [pawl.MaxBatchBytes] of payloads, headers and
// histories, and [pawl.ErrConflict] when an ID is in the file or twice in the batch, or a job and one in
// the file have one unique key, each in a state that keeps the other out. Jobs of one call
// do not keep one another out: they stood beside each other where they come from.
func (q *Queue) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []Effect) error {
	if len(jobs)+len(effects) == 0 {
		return nil
	}
	if err := checkRestore(jobs, effects, q.opts.MaxPayload); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	seq := q.seq.Add(uint64(len(jobs))) - uint64(len(jobs))
	op, bytes := newRestore(jobs, effects, q.opts.Now(), seq)
	err := q.scheduler.intake.do(ctx, op, bytes)
	if err == nil || errors.Is(err, pawl.ErrUnknownOutcome) {
		for i, e := range jobs {
			n := &op.jobs[i]
			e.ID, e.Queue, e.Origin, e.Created, e.NotBefore, e.Seq = n.ID, n.Queue, n.Origin, n.Created, n.NotBefore, n.Seq
		}
	}
	return err
}

// restore stores jobs as they stand, and effects.
type restore struct {
	jobs    []newJob
	effects []Effect
}

// newRestore prepares jobs that checkRestore has passed, as far as that needs no
// transaction. It works on copies. Seq is the sequence before the first.
func newRestore(jobs []*pawl.Envelope, effects []Effect, now time.Time, seq uint64) (op *restore, bytes int) {
	op = &restore{jobs: make([]newJob, len(jobs)), effects: effects}
	now = now.Round(0)
	for i, e := range jobs {
		j := &op.jobs[i]
		j.Envelope, j.fresh = *e, e.ID.IsZero()
		seq++
		j.Seq = seq
		j.arrive(now)
		j.encode()
		bytes += len(j.record) + carried(&j.Envelope)
	}
	return op, bytes
}

// arrive makes of a job that another process has read what this one stores. A job that is to
// end stays leased until the transaction ends it.
func (j *newJob) arrive(now time.Time) {
	j.Delay, j.OnConflict, j.Existing, j.LeasedSince = 0, pawl.UseExisting, false, time.Time{}
	if j.ID.IsZero() {
		j.ID = pawl.NewID(now)
	}
	setDefault(&j.Queue, pawl.DefaultQueue)
	setDefault(&j.Origin, j.Queue)
	for _, t := range []*time.Time{&j.Created, &j.NotBefore} {
		if t.IsZero() {
			*t = now
		}
	}
	for _, t := range []*time.Time{&j.Created, &j.NotBefore, &j.Deadline, &j.BackoffSince, &j.Completed} {
		*t = t.Round(0) // without its monotonic part
	}
	if j.Death != nil {
		j.Death = &pawl.Death{Reason: j.Death.Reason, At: j.Death.At.Round(0)}
	}
	switch j.State {
	case pawl.Dead, pawl.Completed:
		j.Cancelled, j.BackoffSince = false, time.Time{}
		return
	case pawl.Leased:
		j.BackoffSince = time.Time{}
	}
	if j.Cancelled {
		j.State = pawl.Leased
		return
	}
	if j.State == pawl.Leased {
		j.State = pawl.Ready
	}
	if j.State == pawl.Ready && j.NotBefore.After(now) {
		j.NotBefore = now
	}
}

// arrival is the state in which the job will be.
func (j *newJob) arrival(now time.Time) pawl.State {
	switch {
	case j.State == pawl.Dead || j.State == pawl.Completed:
		return j.State
	case j.State == pawl.Leased || overdue(&j.Envelope, now):
		return pawl.Dead
	case j.State == pawl.Delayed && !j.NotBefore.After(now):
		return pawl.Ready
	}
	return j.State
}

// check refuses IDs and unique keys that are taken.
func (op *restore) check(t *txn) error {
	for i := range op.jobs {
		j := &op.jobs[i]
		if !j.fresh && t.jobs.Get(j.ID[:]) != nil {
			return fmt.Errorf("restore: job %d, %s: %w: the queue holds a job of this ID already", i, j.ID, pawl.ErrConflict)
		}
		if j.UniqueKey == "" || !j.BlockedBy(j.arrival(t.now)) {
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
	return nil
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
	own := n.Envelope // if it dies here it changes, and the operation may run again
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
	t.restoreUnique(j, n.arrival(t.now))
	state := j.State
	j.State, j.History = "", nil
	t.tell(pawl.Event{Type: pawl.EventEnqueued, Job: j.Envelope})
	switch state {
	case pawl.Ready:
		t.placeReady(j)
	case pawl.Delayed:
		t.place(j)
	case pawl.Leased:
		t.bury(j, pawl.ReasonCancelled, run{cause: "it was cancelled, and restored without its run"})
	case pawl.Dead:
		t.placeDead(j)
	case pawl.Completed:
		t.placeCompleted(j)
	}
}

// restoreUnique makes a job in the state given the one that has its unique key, unless
// another one keeps others out by it and this one does not.
func (t *txn) restoreUnique(j stored, state pawl.State) {
	if j.UniqueKey == "" {
		return
	}
	if _, _, taken, err := t.uniqueHolder(j.Envelope); err == nil && taken && !j.BlockedBy(state) {
		return
	}
	t.takeUnique(j)
}

// restoreEffect notes that an effect is done, unless it is for longer, or that is over.
func (t *txn) restoreEffect(e Effect) {
	key := effectKey(nil, &pawl.Envelope{Kind: e.Kind, IdempotencyKey: e.Key})
	row, _ := t.effect(key) // a damaged one is written anew
	if until := e.Until.Round(0); until.After(t.now) && until.After(row.done) {
		t.doneUntil(key, row, until)
	}
}
