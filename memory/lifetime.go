package memory

import (
	"time"

	"github.com/gopawl/pawl"
)

// The ends of a job that come with time: its deadline while it waits, and the end of
// its retention once it is completed.

// isMortal reports whether a deadline will end the job where it is now.
func (j *job) isMortal() bool {
	waits := j.State == pawl.Ready || j.State == pawl.Delayed
	return waits && !j.Deadline.IsZero()
}

// expire makes the jobs that wait past their deadline dead.
func (q *Queue) expire() {
	for len(q.mortal.jobs) > 0 && q.moves.IsLate(&q.mortal.jobs[0].Envelope) {
		j := q.mortal.jobs[0]
		q.take(j)
		q.moves.MakeDead(j, pawl.ReasonDeadline, pawl.Event{Cause: "its deadline has passed"})
	}
}

// retainedUntil is when the record of a completed job goes.
func (j *job) retainedUntil() time.Time { return j.Completed.Add(j.Retain) }

// purge removes the records whose time is over.
func (q *Queue) purge() {
	for len(q.completed.jobs) > 0 && !q.completed.jobs[0].retainedUntil().After(q.moves.Now) {
		j := q.completed.jobs[0]
		q.take(j)
		txn{q}.Remove(j)
	}
}
