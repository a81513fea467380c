package memory

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/gopawl/pawl"
)

// The moves between the states. Whoever calls them holds the mutex and has checked
// that they apply. A job is taken out of its list, changed, and put into the next.

// take takes a job out of the list of its state.
func (q *Queue) take(j *job) {
	q.listOf(j).remove(j)
	*j.line.counts.of(j.State)--
}

// put puts a job that is in no list into that of a state.
func (q *Queue) put(j *job, state pawl.State) {
	j.State = state
	q.listOf(j).add(j)
	*j.line.counts.of(state)++
}

func (q *Queue) listOf(j *job) *list {
	switch j.State {
	case pawl.Ready:
		return &j.line.ready
	case pawl.Delayed:
		return &q.delayed
	case pawl.Parked:
		return &q.parked
	case pawl.Leased:
		return &q.leased
	case pawl.Dead:
		return &j.line.dead
	}
	panic(fmt.Sprintf("memory: a job is in the state %q", j.State))
}

// schedule puts a job where it waits for a delay, or makes it ready without one.
func (q *Queue) schedule(j *job, delay time.Duration) {
	j.NotBefore = q.now.Add(max(delay, 0))
	q.place(j)
}

// place puts a job into ready or delayed, by its NotBefore.
func (q *Queue) place(j *job) {
	if j.NotBefore.After(q.now) {
		q.put(j, pawl.Delayed)
	} else {
		q.put(j, pawl.Ready)
	}
}

// catchUp makes the moves that are due whoever calls, and sets the alarm for the
// next.
func (q *Queue) catchUp() {
	q.promote()
	q.reap()
	q.serve()
	q.setAlarm()
}

// promote makes ready what is due. NotBefore stays: it is ready since it was due.
func (q *Queue) promote() {
	for len(q.delayed.jobs) > 0 && !q.delayed.jobs[0].NotBefore.After(q.now) {
		j := q.delayed.jobs[0]
		q.take(j)
		q.put(j, pawl.Ready)
	}
}

// unpark makes the parked jobs of some kinds ready, in their old places.
func (q *Queue) unpark(kinds []string) (moved int) {
	for _, j := range slices.Clone(q.parked.jobs) {
		if slices.Contains(kinds, j.Kind) {
			q.take(j)
			q.put(j, pawl.Ready)
			moved++
		}
	}
	return moved
}

// lease puts a job into leased, for the full length of a lease from now.
func (q *Queue) lease(j *job) {
	j.expires = time.Now().Add(q.opts.Lease)
	q.put(j, pawl.Leased)
}

// endLease takes a job out of leased.
func (q *Queue) endLease(j *job) {
	q.take(j)
	j.LeasedSince = time.Time{}
}

// reap takes back the leases that have expired: each job counts a crash and is
// ready in its old place, or dead at the cap.
func (q *Queue) reap() (reaped int) {
	for now := time.Now(); len(q.leased.jobs) > 0 && !q.leased.jobs[0].expires.After(now); reaped++ {
		j := q.leased.jobs[0]
		q.endLease(j)
		j.Crashes++
		if q.opts.MaxCrashes == NoMaxCrashes || j.Crashes < q.opts.MaxCrashes {
			q.put(j, pawl.Ready)
			continue
		}
		cause := fmt.Sprintf("crashed %d times in a row", j.Crashes)
		q.note(j, j.Attempt(), cause)
		q.bury(j, pawl.ReasonPoison, cause)
	}
	return reaped
}

// failed counts a failed run and keeps its cause.
func (q *Queue) failed(j *job, cause string) {
	j.Attempts = pawl.NextAttempt(j.Attempts)
	q.note(j, j.Attempts, cause)
}

// note appends to the history of a job, of which the two ends are kept.
func (q *Queue) note(j *job, attempt int, cause string) {
	j.Failures++
	j.History = append(j.History, pawl.Failure{Attempt: attempt, At: q.now, Error: clip(cause, pawl.MaxErrorText)})
	if len(j.History) > pawl.HistoryKeepHead+pawl.HistoryKeepTail {
		j.History = slices.Delete(j.History, pawl.HistoryKeepHead, pawl.HistoryKeepHead+1)
	}
}

// bury puts a job to the dead letters, and says so once.
func (q *Queue) bury(j *job, reason pawl.Reason, cause string) {
	j.Death = &pawl.Death{Reason: reason, At: q.now}
	q.put(j, pawl.Dead)
	q.opts.Logger.Error("job is dead", "id", j.ID, "kind", j.Kind, "queue", j.Queue,
		"reason", string(reason), "attempts", j.Attempts, "error", clip(cause, 512))
}

// revive makes a dead letter ready, behind those that are ready already. History
// stays.
func (q *Queue) revive(j *job, keepAttempts bool) {
	q.take(j)
	j.Death = nil
	j.Crashes = 0
	if !keepAttempts {
		j.Attempts = 0
	}
	j.NotBefore = q.now
	q.put(j, pawl.Ready)
}

// clip shortens a text to at most n bytes, at the end of a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for range utf8.UTFMax - 1 {
		if utf8.RuneStart(s[n]) {
			break
		}
		n--
	}
	return s[:n] + mark
}
