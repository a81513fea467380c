package sqlite

import (
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// A transaction makes the moves of [core.Moves] directly in the tables.

// Base implements [core.Job].
func (j *job) Base() *pawl.Envelope { return &j.Envelope }

// New returns a job that is not stored yet.
func (t *txn) New(e *pawl.Envelope) *job { return &job{Envelope: *e} }

// Number gives a new job its sequence and its line.
func (t *txn) Number(j *job) { j.Seq, j.line = uint64(t.next()), t.lineOf(j.Queue, j.Kind) }

// Member counts nothing: the queue has no groups.
func (t *txn) Member(string, driver.Standing, driver.Standing) {}

// Join refuses nothing.
func (t *txn) Join(string, int) error { return nil }

// Take does nothing, since a row is written as a whole.
func (t *txn) Take(*job) {}

// Put puts a job into a state.
func (t *txn) Put(j *job, state pawl.State) {
	j.State = state
	j.waits = state == pawl.Ready && t.waits(j.ID)
	if j.stored {
		t.save(j)
	} else {
		t.insert(j)
	}
	t.stir()
	if !j.Deadline.IsZero() && (state == pawl.Ready || state == pawl.Delayed) {
		t.FallsDue(j.Deadline)
	}
}

// stir makes the scheduler look at the waiting fetches.
func (t *txn) stir() { t.q.stirred = true }

// FallsDue makes the scheduler look at the given time or earlier.
func (t *txn) FallsDue(at time.Time) {
	if at.Before(t.q.due) {
		t.q.due = at
	}
}

// Remove removes a job permanently, with its history and its key.
func (t *txn) Remove(j *job) {
	t.exec(`DELETE FROM pawl_job WHERE seq = ?`, int64(j.Seq))
	if j.Failures > 0 {
		t.exec(`DELETE FROM pawl_history WHERE seq = ?`, int64(j.Seq))
	}
	if j.UniqueKey != "" {
		t.exec(`DELETE FROM pawl_uniq WHERE name = ? AND seq = ?`, []byte(core.UniqueName(&j.Envelope)), int64(j.Seq))
	}
	t.forget(j.ID)
	j.State = ""
	t.stir()
}

// EndLease takes a job out of leased. The caller stores its new place.
func (t *txn) EndLease(j *job) {
	j.LeasedSince, j.BackoffSince = time.Time{}, time.Time{}
	id, token := j.ID, j.token
	j.token = 0
	t.settled[id] = true
	t.after = append(t.after, func() { t.q.release(id, token) })
}

// release forgets a lease that has ended.
func (q *Queue) release(id pawl.ID, token int64) {
	if h := q.held[id]; h != nil && h.token == token {
		delete(q.held, id)
		delete(q.repeats, id)
		if effect := core.EffectName(&h.job.Envelope); q.running[effect] == id {
			delete(q.running, effect)
		}
	}
	q.acked.remove(id, uint64(token)) // if there is one, its transaction was rolled back
}

// Keep appends to the history of a job.
func (t *txn) Keep(j *job, f pawl.Failure) { t.addHistory(j, j.Failures, f) }

// Done records that an effect is done until a time.
func (t *txn) Done(name string, until time.Time) {
	t.exec(sqlRestoreEffect, []byte(name), nanos(until)) // a restore during the lease may have set a later time
}

// Mark marks a leased job as cancelled.
func (t *txn) Mark(j *job) {
	t.exec(`UPDATE pawl_job SET cancelled = 1 WHERE seq = ?`, int64(j.Seq))
	t.cancelled[j.ID] = true
	if h := t.q.held[j.ID]; h != nil {
		t.after = append(t.after, func() {
			h.job.Cancelled = true
			h.signal.Fire()
		})
	}
}

// Hold makes a job the holder of its unique key.
func (t *txn) Hold(j *job) {
	if j.UniqueKey != "" {
		t.exec(`INSERT OR REPLACE INTO pawl_uniq (name, seq) VALUES (?, ?)`, []byte(core.UniqueName(&j.Envelope)), int64(j.Seq))
	}
}

// Emit records what happened to a job, with its current state.
func (t *txn) Emit(j *job, e pawl.Event) {
	t.totals.Count(e.Type, 1)
	if !t.q.reporter.Wants(e.Type) && j.Result == nil {
		return
	}
	now := j.Envelope
	now.Payload, now.Cursor, now.History = nil, nil, nil
	e.At, e.Job = t.Now, &now
	t.events = append(t.events, e)
}
