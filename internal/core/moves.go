// Package core has what all engines that keep jobs in rows share: the moves of a job between its states, the intake of
// a group commit, and lists in pages. It does not depend on how an engine stores a job.
package core

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Job is a job as an engine represents it in a transaction.
type Job interface {
	comparable
	Base() *pawl.Envelope
}

// Txn is the part of an engine's transaction that moves use. The engine records the errors of its statements.
type Txn[J Job] interface {
	Get(id pawl.ID) J               // the zero J if there is none
	HolderOf(e *pawl.Envelope) J    // the job that holds the unique key of e, as it is stored
	Meets(pawl.Condition, J) bool   // reports whether a job matches a condition, which is not nil
	New(e *pawl.Envelope) J         // a job that is not stored yet
	Number(J)                       // gives a new job its sequence
	Take(J)                         // takes a job out of its place, before a change of its order there
	Put(J, pawl.State)              // puts a job without a place into a state
	Remove(J)                       // permanently removes a job without a place, with its history and its key
	EndLease(J)                     // takes a job out of leased
	Mark(J)                         // marks a leased job as cancelled
	Hold(J)                         // makes a job the holder of its unique key, if it has one
	Keep(J, pawl.Failure)           // appends to the history of a job, which keeps its first and last entries
	Done(name string, at time.Time) // records that an effect is done until a time
	FallsDue(time.Time)             // makes the scheduler look at a time, or earlier
	Emit(J, pawl.Event)             // emits an event with the current state of a job

	// Limits returns the limits of a queue. It is called for new jobs with a cost.
	Limits(queue string) pawl.Limits

	// Member counts the move of a member of a group. Join returns why a group does not accept that many new members.
	Member(group string, from, to driver.Standing)
	Join(group string, members int) error

	// Await records what a new job waits for, before the job has a place. Awaited reports whether other jobs wait for a
	// job. Ended records that a job has succeeded or is dead.
	Await(J)
	Awaited(pawl.ID) bool
	Ended(pawl.ID, pawl.State)
}

// Moves are the moves between the states, in a transaction. Callers must have checked that a move applies.
type Moves[J Job] struct {
	Now time.Time

	txn        Txn[J]
	maxCrashes int
}

// NewMoves returns the moves of a transaction. A job becomes dead after maxCrashes crashes in a row. A negative number
// means no limit.
func NewMoves[J Job](txn Txn[J], maxCrashes int) Moves[J] {
	return Moves[J]{txn: txn, maxCrashes: maxCrashes}
}

// UniqueName returns the name of the unique key of a job. No name of a queue or a kind has a zero byte.
func UniqueName(e *pawl.Envelope) string { return e.Queue + "\x00" + e.Kind + "\x00" + e.UniqueKey }

// EffectName returns the name of the effect of a job, "" for none.
func EffectName(e *pawl.Envelope) string {
	if e.IdempotencyKey == "" {
		return ""
	}
	return e.Kind + "\x00" + e.IdempotencyKey
}

// IsLate reports whether a job is past its deadline.
func (m *Moves[J]) IsLate(e *pawl.Envelope) bool {
	return !e.Deadline.IsZero() && !e.Deadline.After(m.Now)
}

// place puts a job into ready or delayed, by its NotBefore.
func (m *Moves[J]) place(j J) {
	if at := j.Base().NotBefore; at.After(m.Now) {
		m.txn.Put(j, pawl.Delayed)
		m.txn.FallsDue(at)
	} else {
		m.txn.Put(j, pawl.Ready)
	}
}

// schedule puts a job where it waits for a delay, or makes it ready without one.
func (m *Moves[J]) schedule(j J, delay time.Duration) {
	j.Base().NotBefore, j.Base().FairTag = m.Now.Add(max(delay, 0)), 0
	m.place(j)
}

// Note appends to the history of a job.
func (m *Moves[J]) Note(j J, attempt int, f pawl.Failure) {
	j.Base().Failures++
	f.Attempt, f.At = attempt, m.Now
	m.txn.Keep(j, f)
}

// member counts the move of a job, if it is a member of a group.
func (m *Moves[J]) member(e *pawl.Envelope, from, to driver.Standing) {
	if e.Group != "" {
		m.txn.Member(e.Group, from, to)
	}
}

// MakeDead makes a job without a place dead, and emits one event. Run describes the attempt that made the job
// dead, if there was one.
func (m *Moves[J]) MakeDead(j J, reason pawl.Reason, run pawl.Event) {
	e := j.Base()
	e.Death = &pawl.Death{Reason: reason, At: m.Now}
	e.Cancelled, e.BackoffSince, e.FairTag = false, time.Time{}, 0
	m.member(e, driver.MemberPending, driver.MemberDead)
	m.txn.Put(j, pawl.Dead)
	m.txn.Ended(e.ID, pawl.Dead)
	run.Type = pawl.EventDied
	m.txn.Emit(j, run)
}

// complete ends a job that is done: it removes the job, or keeps its record for a time.
func (m *Moves[J]) complete(j J) {
	e := j.Base()
	m.member(e, driver.MemberPending, driver.MemberSucceeded)
	m.txn.Ended(e.ID, pawl.Completed)
	e.Cursor = nil
	if e.Retain == 0 {
		m.txn.Remove(j)
		return
	}
	e.Crashes, e.Cancelled, e.BackoffSince = 0, false, time.Time{}
	e.Completed, e.FairTag = m.Now, 0
	m.txn.Put(j, pawl.Completed)
	m.txn.FallsDue(e.Completed.Add(e.Retain))
}

// Skip ends a ready job without an attempt, since its effect is done.
func (m *Moves[J]) Skip(j J) {
	m.txn.Take(j)
	m.complete(j)
	m.txn.Emit(j, pawl.Event{Type: pawl.EventSkipped})
}

// revive makes a dead job ready, behind the other ready jobs, and gives it its unique key back. The history stays.
func (m *Moves[J]) revive(j J, keepAttempts bool) {
	m.txn.Take(j)
	e := j.Base()
	m.member(e, driver.MemberDead, driver.MemberPending)
	e.Death, e.Crashes = nil, 0
	if !keepAttempts {
		e.Attempts = 0
	}
	e.NotBefore = m.Now
	m.txn.Hold(j)
	m.txn.Put(j, pawl.Ready)
	m.txn.Emit(j, pawl.Event{Type: pawl.EventRevived})
}

// runNow makes a delayed job ready. A job that was due already is ready since then.
func (m *Moves[J]) runNow(j J) {
	m.txn.Take(j)
	if e := j.Base(); e.NotBefore.After(m.Now) {
		e.NotBefore = m.Now
	}
	m.txn.Put(j, pawl.Ready)
	m.txn.Emit(j, pawl.Event{Type: pawl.EventRunNow})
}

// Crash ends a lease whose holder is gone. The job becomes ready in its old place. At the limit of crashes, or if it
// was cancelled, it becomes dead.
func (m *Moves[J]) Crash(j J, event pawl.EventType) {
	m.txn.EndLease(j)
	e := j.Base()
	e.Crashes++
	e.State = pawl.Ready
	m.txn.Emit(j, pawl.Event{Type: event})
	switch {
	case e.Cancelled:
		m.MakeDead(j, pawl.ReasonCancelled, pawl.Event{Cause: "it was cancelled, and its lease expired"})
	case m.maxCrashes >= 0 && e.Crashes >= m.maxCrashes:
		cause := fmt.Sprintf("crashed %d times in a row", e.Crashes)
		m.Note(j, e.Attempt(), pawl.Failure{Error: cause})
		m.MakeDead(j, pawl.ReasonPoison, pawl.Event{Cause: cause})
	default:
		m.txn.Put(j, pawl.Ready)
	}
}

// End ends the lease of a job as a settlement says. Every settlement resets the crashes. A cancelled job becomes dead
// after any settlement except a success.
func (m *Moves[J]) End(j J, s *pawl.Settlement, failure pawl.Failure) {
	m.txn.EndLease(j)
	e := j.Base()
	e.Crashes = 0
	run := pawl.Event{Took: driver.Took(s.Lease), TimedOut: s.Lease.TimedOut}
	switch s.Outcome {
	case pawl.OutcomeAck:
		e.Attempts = driver.NextAttempt(e.Attempts)
		e.Result = s.Result
		if name := EffectName(e); name != "" {
			m.txn.Done(name, m.Now.Add(cmp.Or(e.IdempotencyTTL, pawl.DefaultIdempotencyTTL)))
		}
		m.complete(j)
		e.Completed = m.Now // for the event, even if the record is not kept
		run.Type = pawl.EventSucceeded
		m.txn.Emit(j, run)
		return
	case pawl.OutcomeNack, pawl.OutcomeAbandon:
		run.Cause = failure.Error
		attempt := e.Attempt()
		if s.Outcome == pawl.OutcomeNack || driver.CountsAttempt(s.Reason) {
			e.Attempts = driver.NextAttempt(e.Attempts)
			attempt = e.Attempts
		}
		m.Note(j, attempt, failure)
	default:
		if e.Cancelled {
			run.Cause = "it was cancelled"
		}
	}
	if e.Cancelled {
		m.MakeDead(j, pawl.ReasonCancelled, run)
		return
	}
	switch s.Outcome {
	case pawl.OutcomeNack:
		run.Type, run.Delay = pawl.EventRetried, max(s.Delay, 0)
		e.BackoffSince = m.Now
		m.schedule(j, s.Delay)
	case pawl.OutcomeAbandon:
		m.MakeDead(j, s.Reason, run)
		return
	case pawl.OutcomeRelease:
		run.Type = pawl.EventReleased
		m.txn.Put(j, pawl.Ready)
	case pawl.OutcomeThrottle: // the engine has begun the rest
		run.Type, run.Delay = pawl.EventReleased, max(s.Delay, 0)
		m.txn.Put(j, pawl.Ready)
	case pawl.OutcomeSnooze:
		run.Type = pawl.EventSnoozed
		if !s.Lease.Started.IsZero() { // the attempt began, and it did not fail
			e.Attempts = 0
		}
		m.schedule(j, s.Delay)
	}
	m.txn.Emit(j, run)
}
