package memory

import (
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// count counts a failed run and keeps its cause.
func (q *Queue) count(j *job, f pawl.Failure) {
	j.Attempts = driver.NextAttempt(j.Attempts)
	q.note(j, j.Attempts, f)
}

// note appends to the history of a job, of which the two ends are kept.
func (q *Queue) note(j *job, attempt int, f pawl.Failure) {
	j.Failures++
	f.Attempt, f.At = attempt, q.now
	j.History = append(j.History, f)
	if len(j.History) > pawl.HistoryKeepHead+pawl.HistoryKeepTail {
		j.History = slices.Delete(j.History, pawl.HistoryKeepHead, pawl.HistoryKeepHead+1)
	}
}

// makeDead puts a job that is in no list to the dead letters, and says so once. Run tells
// of the run that it died of, if there was one.
func (q *Queue) makeDead(j *job, reason pawl.Reason, run pawl.Event) {
	j.Death = &pawl.Death{Reason: reason, At: q.now}
	j.Cancelled, j.BackoffSince = false, time.Time{}
	q.put(j, pawl.Dead)
	q.member(&j.Envelope, driver.MemberPending, driver.MemberDead)
	q.opts.Logger.Error("job is dead", "id", j.ID, "kind", j.Kind, "queue", j.Queue,
		"reason", string(reason), "attempts", j.Attempts, "error", ellipsis.Truncate(run.Cause, 512))
	run.Type = pawl.EventDied
	q.emit(j, run)
}

// revive makes a dead letter ready, behind those that are ready already, and has it
// take its unique key back. History stays.
func (q *Queue) revive(j *job, keepAttempts bool) {
	q.take(j)
	j.Death = nil
	j.Crashes = 0
	if !keepAttempts {
		j.Attempts = 0
	}
	j.NotBefore = q.now
	q.hold(j)
	q.member(&j.Envelope, driver.MemberDead, driver.MemberPending)
	q.put(j, pawl.Ready)
	q.emit(j, pawl.Event{Type: pawl.EventRevived})
}
