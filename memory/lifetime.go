package memory

import (
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The ends of a job that come with time: its deadline while it waits, and the end of
// its retention once it is completed.

// isMortal reports whether a deadline will end the job where it is now.
func (j *job) isMortal() bool {
	waits := j.State == pawl.Ready || j.State == pawl.Delayed
	return waits && !j.Deadline.IsZero()
}

// isLate reports whether a job is past its deadline.
func (q *Queue) isLate(j *job) bool { return !j.Deadline.IsZero() && !j.Deadline.After(q.now) }

// expire makes the jobs that wait past their deadline dead.
func (q *Queue) expire() {
	for len(q.mortal.jobs) > 0 && q.isLate(q.mortal.jobs[0]) {
		j := q.mortal.jobs[0]
		q.take(j)
		q.makeDead(j, pawl.ReasonDeadline, pawl.Event{Cause: "its deadline has passed"})
	}
}

// complete ends a job that has no more to do: it is removed, or its record is kept
// for a time.
func (q *Queue) complete(j *job) {
	q.member(&j.Envelope, driver.MemberPending, driver.MemberSucceeded)
	j.Cursor = nil
	if j.Retain == 0 {
		q.forget(j)
		return
	}
	j.Crashes, j.Cancelled, j.BackoffSince = 0, false, time.Time{}
	j.Completed = q.now
	q.put(j, pawl.Completed)
}

// retainedUntil is when the record of a completed job goes.
func (j *job) retainedUntil() time.Time { return j.Completed.Add(j.Retain) }

// purge removes the records whose time is over.
func (q *Queue) purge() {
	for len(q.completed.jobs) > 0 && !q.completed.jobs[0].retainedUntil().After(q.now) {
		j := q.completed.jobs[0]
		q.take(j)
		q.forget(j)
	}
}
