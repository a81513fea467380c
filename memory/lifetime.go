package memory

import (
	"time"

	"github.com/gopawl/pawl"
)

// What ends a job by time: its deadline while it waits, and the end of its retention
// once it is completed.

// isMortal reports whether a deadline will end the job in its present state.
func (j *job) isMortal() bool {
	waits := j.State == pawl.Ready || j.State == pawl.Delayed
	return waits && !j.Deadline.IsZero()
}

// expire makes waiting jobs dead whose deadline has passed.
func (q *Queue) expire() {
	for len(q.mortal.jobs) > 0 && q.moves.IsLate(&q.mortal.jobs[0].Envelope) {
		j := q.mortal.jobs[0]
		q.take(j)
		q.moves.MakeDead(j, pawl.ReasonDeadline, pawl.Event{Cause: "its deadline has passed"})
	}
}

// retainedUntil returns when the record of a completed job is removed.
func (j *job) retainedUntil() time.Time { return j.Completed.Add(j.Retain) }

// purge removes the records whose retention has ended.
func (q *Queue) purge() {
	for len(q.completed.jobs) > 0 && !q.completed.jobs[0].retainedUntil().After(q.moves.Now) {
		j := q.completed.jobs[0]
		q.take(j)
		txn{q}.Remove(j)
	}
}
