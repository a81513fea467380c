package memory

import (
	"maps"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// txn is the queue as [core.Moves] change it.
type txn struct{ *Queue }

// Base implements [core.Job].
func (j *job) Base() *pawl.Envelope { return &j.Envelope }

// Get returns the job of an ID, nil if there is none.
func (t txn) Get(id pawl.ID) *job { return t.jobs[id] }

// HolderOf returns the job that holds the unique key of e.
func (t txn) HolderOf(e *pawl.Envelope) *job { return t.holders[uniqueOf(e)] }

// Meets reports whether a job matches a condition.
func (t txn) Meets(c pawl.Condition, j *job) bool {
	e := j.Envelope
	if !driver.ReadsBody(c) {
		e.Payload, e.History = nil, nil
	}
	return c.Matches(detach(&e))
}

// New returns a job that is not stored yet.
func (t txn) New(e *pawl.Envelope) *job {
	j := &job{Envelope: *e, line: t.line(e.Queue)}
	detach(&j.Envelope)
	return j
}

// Number gives a new job its sequence.
func (t txn) Number(j *job) {
	t.seq++
	j.Seq = t.seq
	t.jobs[j.ID] = j
}

// Take takes a job out of the list of its state.
func (t txn) Take(j *job) { t.take(j) }

// Put puts a job that is in no list into the list of a state.
func (t txn) Put(j *job, state pawl.State) { t.put(j, state) }

// Remove removes a job that is in no list for good.
func (t txn) Remove(j *job) {
	j.State = ""
	t.forget(j)
	j.line.freeKey(j)
	delete(t.jobs, j.ID)
	if j.UniqueKey != "" && t.HolderOf(&j.Envelope) == j { // unless another took it
		delete(t.holders, uniqueOf(&j.Envelope))
	}
}

// EndLease takes a job out of leased.
func (t txn) EndLease(j *job) {
	t.take(j)
	if j.IdempotencyKey != "" {
		delete(t.running, core.EffectName(&j.Envelope))
	}
	j.signal = nil // it keeps the attempt of the worker in memory
	j.LeasedSince, j.BackoffSince = time.Time{}, time.Time{}
}

// Mark notes the signal of a leased job that was cancelled.
func (t txn) Mark(j *job) { t.cancelled = append(t.cancelled, j.signal) }

// Hold makes a job the holder of its unique key.
func (t txn) Hold(j *job) {
	if j.UniqueKey != "" {
		t.holders[uniqueOf(&j.Envelope)] = j
	}
}

// Keep appends to the history of a job, and keeps the two ends of the history.
func (t txn) Keep(j *job, f pawl.Failure) {
	j.History = append(j.History, f)
	if len(j.History) > pawl.HistoryKeepHead+pawl.HistoryKeepTail {
		j.History = slices.Delete(j.History, pawl.HistoryKeepHead, pawl.HistoryKeepHead+1)
	}
}

// Done notes that an effect is done until a time.
func (t txn) Done(name string, until time.Time) {
	if !until.After(t.effects[name]) {
		return // a restore during the lease has set a later time
	}
	t.effects[name] = until
	if len(t.effects) >= t.sweepAt {
		maps.DeleteFunc(t.effects, func(_ string, until time.Time) bool { return !until.After(t.moves.Now) })
		t.sweepAt = max(1000, 2*len(t.effects))
	}
}

// FallsDue does nothing: the lists know what is due.
func (t txn) FallsDue(time.Time) {}

// Emit notes what happened to a job, after its move, once nothing can stop the transition. [Queue.report] reports it.
func (t txn) Emit(j *job, e pawl.Event) {
	l := j.line
	if l.totals.Changes == 0 {
		t.counted = append(t.counted, l)
	}
	l.totals.Count(e.Type, 1)
	l.fetched = l.fetched || e.Type == pawl.EventFetched
	if !t.reporter.Wants(e.Type) && !t.waiters.Any() {
		return
	}
	now := j.Envelope // a copy, because the queue's own goes on changing
	now.Cursor = nil
	e.At, e.Job = t.moves.Now, &now
	t.events = append(t.events, e)
}

// Member counts the move of a member of a group, in the transition that moves it; see [driver.Groups].
func (t txn) Member(group string, from, to driver.Standing) {
	t.groups.Move(t.snapshot(), group, from, to)
}

// Join returns an error if a group does not take new members.
func (t txn) Join(group string, members int) error {
	return t.groups.Admit(t.snapshot(), group, members)
}
