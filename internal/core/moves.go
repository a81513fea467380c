// Package core has what the engines that keep jobs in rows do alike: the moves of a job between its
// states, the intake of a group commit, and lists in pages. It knows nothing of how an engine stores a job.
package core

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Job is a job as an engine has it in a transaction.
type Job interface {
	comparable
	Base() *pawl.Envelope
}

// Txn is a transaction of an engine, as far as moves change it. An engine notes the errors of its
// statements by itself.
type Txn[J Job] interface {
	Get(id pawl.ID) J               // the zero J if there is none
	HolderOf(e *pawl.Envelope) J    // the job that holds the unique key of e, as it is stored
	Meets(pawl.Condition, J) bool   // a condition that is not nil
	New(e *pawl.Envelope) J         // a job that is not stored yet
	Number(J)                       // gives a new job its sequence
	Take(J)                         // takes a job out of its place, before what orders it there changes
	Put(J, pawl.State)              // puts a job that is in no place into a state
	Remove(J)                       // removes a job that is in no place for good, with its history and its key
	EndLease(J)                     // takes a job out of leased
	Mark(J)                         // marks a leased job as cancelled
	Hold(J)                         // makes a job the holder of its unique key, if it has one
	Keep(J, pawl.Failure)           // appends to the history of a job, of which the two ends are kept
	Done(name string, at time.Time) // notes that an effect is done until a time
	FallsDue(time.Time)             // has the scheduler look at a time, or sooner
	Emit(J, pawl.Event)             // notes what happened to a job, as it is now

	// Limits returns the limits of a queue. It is called for new jobs with a cost.
	Limits(queue string) pawl.Limits

	// Member counts the move of a member of a group. Join returns why a group does not take so many
	// new members.
	Member(group string, from, to driver.Standing)
	Join(group string, members int) error

	// Await notes what a new job waits for, before it has a place. Awaited reports whether other jobs
	// wait for a job. Ended notes that a job has succeeded or is dead.
	Await(J)
	Awaited(pawl.ID) bool
	Ended(pawl.ID, pawl.State)
}

// Moves are the moves between the states, in a transaction. Whoever calls them has checked that they apply.
type Moves[J Job] struct {
	Now time.Time

	txn        Txn[J]
	maxCrashes int
}

// NewMoves returns the moves of a transaction. A job is dead after maxCrashes in a row, unless that is negative.
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

// MakeDead makes a job that is in no place dead, and says so once. Run describes the run that it died of, if there was one.
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

// complete ends a job that has no more to do: it is removed, or its record is kept for a time.
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

// Skip ends a ready job without a run, since its effect is done.
func (m *Moves[J]) Skip(j J) {
	m.txn.Take(j)
	m.complete(j)
	m.txn.Emit(j, pawl.Event{Type: pawl.EventSkipped})
}

// revive makes a dead job ready, behind those that are ready already, and has it take its unique key
// back. The history stays.
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

// Crash ends a lease whose holder is gone: the job is ready in its old place, or dead at the limit of
// crashes and when it was cancelled.
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

// End ends the lease of a job as a settlement says. No settlement leaves a crash behind, and of a job
// that was cancelled only a success counts.
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
		e.Completed = m.Now // for the event of a job whose record is not kept
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
		if !s.Lease.Started.IsZero() { // a run, and it did not fail
			e.Attempts = 0
		}
		m.schedule(j, s.Delay)
	}
	m.txn.Emit(j, run)
}
