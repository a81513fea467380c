package sqlite

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The moves between the states. Whoever calls them has checked that they apply.

// put puts a job into a state.
func (t *txn) put(j *job, state pawl.State) {
	j.State = state
	if j.stored {
		t.save(j)
	} else {
		t.insert(j)
	}
	t.stir()
	if !j.Deadline.IsZero() && (state == pawl.Ready || state == pawl.Delayed) {
		t.fallsDue(j.Deadline)
	}
}

// stir has the fetches that wait looked at.
func (t *txn) stir() { t.q.stirred = true }

// place puts a job into ready or delayed, by its NotBefore.
func (t *txn) place(j *job) {
	if j.NotBefore.After(t.now) {
		t.put(j, pawl.Delayed)
		t.fallsDue(j.NotBefore)
	} else {
		t.put(j, pawl.Ready)
	}
}

// fallsDue has the scheduler look at a time, or sooner.
func (t *txn) fallsDue(at time.Time) {
	if at.Before(t.q.due) {
		t.q.due = at
	}
}

// schedule puts a job where it waits for a delay, or makes it ready without one.
func (t *txn) schedule(j *job, delay time.Duration) {
	j.NotBefore = t.now.Add(max(delay, 0))
	t.place(j)
}

// remove removes a job for good, with its history and its key.
func (t *txn) remove(j *job) {
	t.exec(`DELETE FROM pawl_job WHERE seq = ?`, int64(j.Seq))
	if j.Failures > 0 {
		t.exec(`DELETE FROM pawl_history WHERE seq = ?`, int64(j.Seq))
	}
	if j.UniqueKey != "" {
		t.exec(`DELETE FROM pawl_uniq WHERE name = ? AND seq = ?`, []byte(uniqueName(&j.Envelope)), int64(j.Seq))
	}
	j.State = ""
	t.stir()
}

// endLease takes a job out of leased. Where it goes is stored with its new place.
func (t *txn) endLease(j *job) {
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
		if effect := effectName(&h.job.Envelope); q.running[effect] == id {
			delete(q.running, effect)
		}
	}
	q.acked.remove(id, uint64(token)) // if there is one, its transaction was rolled back
}

// count counts a failed run and keeps its cause.
func (t *txn) count(j *job, f pawl.Failure) {
	j.Attempts = driver.NextAttempt(j.Attempts)
	t.note(j, j.Attempts, f)
}

// note appends to the history of a job, of which the two ends are kept.
func (t *txn) note(j *job, attempt int, f pawl.Failure) {
	j.Failures++
	f.Attempt, f.At = attempt, t.now
	t.addHistory(j, j.Failures, f)
}

// makeDead makes a job dead, and says so once. Run describes the run that it died of, if there
// was one.
func (t *txn) makeDead(j *job, reason pawl.Reason, run pawl.Event) {
	j.Death = &pawl.Death{Reason: reason, At: t.now}
	j.Cancelled, j.BackoffSince = false, time.Time{}
	t.put(j, pawl.Dead)
	run.Type = pawl.EventDied
	t.emit(j, run)
}

// succeed notes that the effect of a job is done.
func (t *txn) succeed(j *job) {
	if name := effectName(&j.Envelope); name != "" {
		until := t.now.Add(cmp.Or(j.IdempotencyTTL, pawl.DefaultIdempotencyTTL))
		t.exec(`INSERT OR REPLACE INTO pawl_effect (name, done_until) VALUES (?, ?)`, []byte(name), nanos(until))
	}
}

// complete ends a job that has no more to do: it is removed, or its record is kept for a time.
func (t *txn) complete(j *job) {
	j.Cursor = nil
	if j.Retain == 0 {
		t.remove(j)
		return
	}
	j.Crashes, j.Cancelled, j.BackoffSince = 0, false, time.Time{}
	j.Completed = t.now
	t.put(j, pawl.Completed)
	t.fallsDue(j.Completed.Add(j.Retain))
}

// skip ends a ready job without a run, since its effect is done.
func (t *txn) skip(j *job) {
	t.complete(j)
	t.emit(j, pawl.Event{Type: pawl.EventSkipped})
}

// revive makes a dead job ready, behind those that are ready already, and has it take its unique
// key back. The history stays.
func (t *txn) revive(j *job, keepAttempts bool) {
	j.Death, j.Crashes = nil, 0
	if !keepAttempts {
		j.Attempts = 0
	}
	j.NotBefore = t.now
	t.hold(j)
	t.put(j, pawl.Ready)
	t.emit(j, pawl.Event{Type: pawl.EventRevived})
}

// runNow makes a delayed job ready. A job that was due already is ready since then.
func (t *txn) runNow(j *job) {
	if j.NotBefore.After(t.now) {
		j.NotBefore = t.now
	}
	t.put(j, pawl.Ready)
	t.emit(j, pawl.Event{Type: pawl.EventRunNow})
}

// crash ends a lease whose holder is gone: the job is ready in its old place, or dead at the limit
// of crashes and when it was cancelled.
func (t *txn) crash(j *job, event pawl.EventType) {
	t.endLease(j)
	j.Crashes++
	j.State = pawl.Ready
	t.emit(j, pawl.Event{Type: event})
	switch {
	case j.Cancelled:
		t.makeDead(j, pawl.ReasonCancelled, pawl.Event{Cause: "it was cancelled, and its lease expired"})
	case t.q.opts.MaxCrashes != NoMaxCrashes && j.Crashes >= t.q.opts.MaxCrashes:
		cause := fmt.Sprintf("crashed %d times in a row", j.Crashes)
		t.note(j, j.Attempt(), pawl.Failure{Error: cause})
		t.makeDead(j, pawl.ReasonPoison, pawl.Event{Cause: cause})
	default:
		t.put(j, pawl.Ready)
	}
}

// hold makes a job the holder of its unique key.
func (t *txn) hold(j *job) {
	if j.UniqueKey != "" {
		t.exec(`INSERT OR REPLACE INTO pawl_uniq (name, seq) VALUES (?, ?)`, []byte(uniqueName(&j.Envelope)), int64(j.Seq))
	}
}

// emit notes what happened to a job, as it is now.
func (t *txn) emit(j *job, e pawl.Event) {
	if !t.q.reporter.Wants(e.Type) && j.Result == nil {
		return
	}
	now := j.Envelope
	now.Payload, now.Cursor, now.History = nil, nil, nil
	e.At, e.Job = t.now, &now
	t.events = append(t.events, e)
}
