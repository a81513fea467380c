package postgres

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The moves between the states, as a transaction makes them in memory. Whoever calls them has
// checked that they apply.

// effect is what becomes of an effect: a job has it, it is done until a time, or it is free.
type effect struct {
	id        pawl.ID
	doneUntil time.Time
}

// touch notes that a job is to be written.
func (t *txn) touch(j *job) {
	if !j.changed {
		j.changed = true
		t.touched = append(t.touched, j)
	}
}

// put puts a job into a state.
func (t *txn) put(j *job, state pawl.State) {
	j.State = state
	t.touch(j)
	t.stir()
	if state == pawl.Ready {
		t.news.ready(j.Queue)
		t.q.marks.precede(j)
	}
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

// remove removes a job for good.
func (t *txn) remove(j *job) {
	j.State, j.gone = "", true
	t.touch(j)
	t.stir()
}

// endLease takes a job out of leased.
func (t *txn) endLease(j *job) {
	if name := effectName(&j.Envelope); name != "" {
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

// release ends a lease that nobody has. What was cancelled meanwhile is dead.
func (t *txn) release(j *job) {
	t.endLease(j)
	if j.Cancelled {
		t.makeDead(j, pawl.ReasonCancelled, pawl.Event{Cause: "it was cancelled"})
		return
	}
	t.put(j, pawl.Ready)
	t.emit(j, pawl.Event{Type: pawl.EventReleased})
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

// count counts a failed run and keeps its cause.
func (t *txn) count(j *job, f pawl.Failure) {
	j.Attempts = driver.NextAttempt(j.Attempts)
	t.note(j, j.Attempts, f)
}

// note appends to the history of a job, of which the two ends are kept.
func (t *txn) note(j *job, attempt int, f pawl.Failure) {
	j.Failures++
	f.Attempt, f.At = attempt, t.now
	j.failures = append(j.failures, f)
}

// makeDead makes a job dead, and says so once. Run describes the run that it died of, if there
// was one.
func (t *txn) makeDead(j *job, reason pawl.Reason, run pawl.Event) {
	j.Death = &pawl.Death{Reason: reason, At: t.now}
	j.Cancelled, j.BackoffSince = false, time.Time{}
	t.member(&j.Envelope, driver.MemberPending, driver.MemberDead)
	t.put(j, pawl.Dead)
	t.news.ended = append(t.news.ended, j.ID)
	run.Type = pawl.EventDied
	t.emit(j, run)
}

// succeed notes that the effect of a job is done.
func (t *txn) succeed(j *job) {
	if name := effectName(&j.Envelope); name != "" {
		t.effects[name] = effect{doneUntil: t.now.Add(cmp.Or(j.IdempotencyTTL, pawl.DefaultIdempotencyTTL))}
	}
}

// complete ends a job that has no more to do: it is removed, or its record is kept for a time.
func (t *txn) complete(j *job) {
	t.member(&j.Envelope, driver.MemberPending, driver.MemberSucceeded)
	j.Cursor = nil
	if j.Retain == 0 {
		t.remove(j)
		return
	}
	j.Crashes, j.Cancelled, j.BackoffSince = 0, false, time.Time{}
	j.Completed = t.now
	t.put(j, pawl.Completed)
	t.news.ended = append(t.news.ended, j.ID)
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
	t.member(&j.Envelope, driver.MemberDead, driver.MemberPending)
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
	t.put(j, pawl.Ready)
	t.emit(j, pawl.Event{Type: event})
	switch {
	case j.Cancelled:
		t.makeDead(j, pawl.ReasonCancelled, pawl.Event{Cause: "it was cancelled, and its lease expired"})
	case t.q.opts.MaxCrashes != NoMaxCrashes && j.Crashes >= t.q.opts.MaxCrashes:
		cause := fmt.Sprintf("crashed %d times in a row", j.Crashes)
		t.note(j, j.Attempt(), pawl.Failure{Error: cause})
		t.makeDead(j, pawl.ReasonPoison, pawl.Event{Cause: cause})
	}
}

// hold makes a job the holder of its unique key.
func (t *txn) hold(j *job) {
	if j.UniqueKey != "" {
		t.holders[uniqueName(&j.Envelope)] = j.ID
		j.holds = true
		t.touch(j)
	}
}

// emit notes what happened to a job, as it is now.
func (t *txn) emit(j *job, e pawl.Event) {
	if !t.q.reporter.Wants(e.Type) && j.Result == nil {
		return
	}
	e.At, e.Job = t.now, t.snapshot(j)
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
