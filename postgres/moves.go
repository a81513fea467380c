package postgres

import (
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/core"
)

// A transaction makes the moves of [core.Moves] in memory.

// Base implements [core.Job].
func (j *job) Base() *pawl.Envelope { return &j.Envelope }

// New returns a job that is not stored yet.
func (t *txn) New(e *pawl.Envelope) *job { return &job{Envelope: *e} }

// Number makes a new job get its sequence when it is stored. Jobs that wait for the job that it replaces then wait
// for the new job.
func (t *txn) Number(j *job) {
	j.Seq, j.failures, j.History = 0, j.History, nil
	if old := t.jobs[j.ID]; old != nil && old.awaited {
		t.awaited[j.ID], t.named[j.ID] = true, true
	}
	t.jobs[j.ID] = j
}

// HolderOf returns the job that holds the unique key of e.
func (t *txn) HolderOf(e *pawl.Envelope) *job { return t.Get(t.holders[core.UniqueName(e)]) }

// effect is the new state of an effect: a job has it, it is done until a time, or it is free.
type effect struct {
	id        pawl.ID
	doneUntil time.Time
}

// touch records that a job must be written.
func (t *txn) touch(j *job) {
	if !j.changed {
		j.changed = true
		t.touched = append(t.touched, j)
	}
}

// Take does nothing, since a row is written as a whole.
func (t *txn) Take(*job) {}

// Put puts a job into a state.
func (t *txn) Put(j *job, state pawl.State) {
	j.State, j.readied, j.late = state, state == pawl.Ready, false
	t.touch(j)
	t.stir()
	switch state {
	case pawl.Ready:
		t.readied(j)
	case pawl.Dead, pawl.Completed:
		j.leaveTurn()
		t.news.ended = append(t.news.ended, j.ID)
	}
	if !j.Deadline.IsZero() && (state == pawl.Ready || state == pawl.Delayed) {
		t.FallsDue(j.Deadline)
	}
}

// readied records that a job is ready.
func (t *txn) readied(j *job) {
	t.stir()
	t.news.ready(j.Queue)
	t.q.marks.precede(j)
}

// stir makes the scheduler look at the waiting fetches.
func (t *txn) stir() { t.q.stirred = true }

// FallsDue makes the scheduler look at the given time or earlier.
func (t *txn) FallsDue(at time.Time) {
	if at.Before(t.q.due) {
		t.q.due = at
	}
}

// Remove removes a job permanently.
func (t *txn) Remove(j *job) {
	j.State, j.gone = "", true
	t.touch(j)
	t.stir()
}

// EndLease takes a job out of leased.
func (t *txn) EndLease(j *job) {
	if name := core.EffectName(&j.Envelope); name != "" {
		t.effects[name] = effect{}
		t.news.ready(j.Queue)
	}
	if t.q.limited[j.Queue] {
		t.news.ready(j.Queue)
	}
	if j.isRepeat() {
		t.effects[repeatSlot] = effect{}
	}
	j.LeasedSince, j.BackoffSince = time.Time{}, time.Time{}
	id, token := j.ID, j.token
	j.token = 0
	t.settled[id] = true
	t.after = append(t.after, func() {
		t.q.release(id, token)
		t.q.acked.remove(id, uint64(token)) // the transaction of that ack was rolled back
	})
}

// release ends a lease that no caller has. A job that was cancelled while it was leased becomes dead.
func (t *txn) release(j *job) {
	t.EndLease(j)
	if j.Cancelled {
		t.MakeDead(j, pawl.ReasonCancelled, pawl.Event{Cause: "it was cancelled"})
		return
	}
	t.Put(j, pawl.Ready)
	t.Emit(j, pawl.Event{Type: pawl.EventReleased})
}

// release forgets a lease that has ended.
func (s *scheduler) release(id pawl.ID, token int64) {
	if h := s.held[id]; h != nil && h.token == token {
		delete(s.held, id)
		if s.claims[token]--; s.claims[token] <= 0 {
			delete(s.claims, token)
			s.unclaimed = append(s.unclaimed, token)
		}
	}
}

// Keep appends to the history of a job.
func (t *txn) Keep(j *job, f pawl.Failure) { j.failures = append(j.failures, f) }

// Done records that an effect is done until a time.
func (t *txn) Done(name string, until time.Time) { t.effects[name] = effect{doneUntil: until} }

// Mark marks a leased job as cancelled.
func (t *txn) Mark(j *job) {
	j.marked = true
	t.touch(j)
	if h := t.q.held[j.ID]; h != nil && h.token == j.token {
		t.after = append(t.after, h.signal.Fire)
	} else {
		t.news.cancelled = append(t.news.cancelled, cancelled{j.ID, j.token})
	}
}

// Hold makes a job the holder of its unique key.
func (t *txn) Hold(j *job) {
	if j.UniqueKey != "" {
		t.holders[core.UniqueName(&j.Envelope)] = j.ID
		j.holds = true
		t.touch(j)
	}
}

// Emit records what happened to a job, with its current state.
func (t *txn) Emit(j *job, e pawl.Event) {
	t.totals.Count(e.Type, 1)
	if !t.q.reporter.Wants(e.Type) && j.Result == nil {
		return
	}
	e.At, e.Job = t.Now, t.snapshot(j)
	t.events = append(t.events, e)
}

// snapshot returns a job as it is now. The sequence of a new job follows.
func (t *txn) snapshot(j *job) *pawl.Envelope {
	e := j.Envelope
	e.Cursor = nil
	if !j.stored {
		j.snapshots = append(j.snapshots, &e)
	}
	return &e
}
