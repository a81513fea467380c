package memory

import (
	"fmt"
	"strconv"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The moves between the states. Whoever calls them holds the mutex and has checked
// that they apply. A job is taken out of its list, changed, and put into the next.

// take takes a job out of the list of its state.
func (q *Queue) take(j *job) {
	q.listOf(j).remove(j)
	j.line.count(j, -1)
	if j.State == pawl.Leased {
		j.line.occupy(j, -1)
	}
	j.line.leaveOrder(j)
	if j.isMortal() {
		q.mortal.remove(j)
	}
}

// put puts a job that is in no list into that of a state.
func (q *Queue) put(j *job, state pawl.State) {
	j.State = state
	j.line.enterOrder(j)
	q.listOf(j).add(j)
	j.line.count(j, 1)
	if state == pawl.Leased {
		j.line.occupy(j, 1)
	}
	if j.isMortal() {
		q.mortal.add(j)
	}
}

// count adds n to the counts of a job's state.
func (l *line) count(j *job, n int) {
	c := l.kinds[j.Kind]
	if c == nil {
		c = new(pawl.Counts)
		l.kinds[j.Kind] = c
	}
	*driver.CountOf(&l.counts, j.State) += n
	*driver.CountOf(c, j.State) += n
}

func (q *Queue) listOf(j *job) *list {
	switch j.State {
	case pawl.Ready:
		return &j.line.ready
	case pawl.Delayed:
		return &q.delayed
	case pawl.Leased:
		return &q.leased
	case pawl.Dead:
		return &j.line.dead
	case pawl.Completed:
		return &q.completed
	}
	panic(fmt.Sprintf("memory: a job is in the state %q", j.State))
}

// forget removes a job that is in no list for good.
func (q *Queue) forget(j *job) {
	j.State = ""
	j.line.freeKey(j)
	delete(q.jobs, j.ID)
	q.free(j)
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

// promote makes ready what is due. NotBefore stays: it is ready since it was due.
func (q *Queue) promote() {
	for len(q.delayed.jobs) > 0 && !q.delayed.jobs[0].NotBefore.After(q.now) {
		j := q.delayed.jobs[0]
		q.take(j)
		q.put(j, pawl.Ready)
	}
}

// runNow makes a delayed job ready. One that was due already is ready since then.
func (q *Queue) runNow(j *job) {
	q.take(j)
	if j.NotBefore.After(q.now) {
		j.NotBefore = q.now
	}
	q.put(j, pawl.Ready)
	q.emit(j, pawl.Event{Type: pawl.EventRunNow})
}

// lease puts a job into leased, for the full length of a lease from now.
func (q *Queue) lease(j *job) {
	j.expires = time.Now().Add(q.opts.Lease)
	q.put(j, pawl.Leased)
}

// extend gives a lease its full length from now.
func (q *Queue) extend(j *job) {
	q.take(j)
	q.lease(j)
}

// endLease takes a job out of leased.
func (q *Queue) endLease(j *job) {
	q.take(j)
	delete(q.running, effectOf(j))
	j.signal = nil // it leads to the attempt of the worker
	j.LeasedSince, j.BackoffSince = time.Time{}, time.Time{}
}

func (q *Queue) logCrash(j *job) {
	crash := strconv.Itoa(j.Crashes)
	if q.opts.MaxCrashes != NoMaxCrashes {
		crash += " of " + strconv.Itoa(q.opts.MaxCrashes)
	}
	q.opts.Logger.Warn("job crashed", "id", j.ID, "kind", j.Kind, "queue", j.Queue, "crash", crash, "cause", "its lease expired")
}

// reap takes back the leases that have expired: each job counts a crash and is
// ready in its old place, or dead at the cap and when it was cancelled.
func (q *Queue) reap() (reaped int) {
	for now := time.Now(); len(q.leased.jobs) > 0 && !q.leased.jobs[0].expires.After(now); reaped++ {
		j := q.leased.jobs[0]
		q.endLease(j)
		j.Crashes++
		q.put(j, pawl.Ready)
		q.logCrash(j)
		q.emit(j, pawl.Event{Type: pawl.EventReaped})
		switch {
		case j.Cancelled:
			q.take(j)
			q.makeDead(j, pawl.ReasonCancelled, pawl.Event{Cause: "it was cancelled, and its lease expired"})
		case q.opts.MaxCrashes != NoMaxCrashes && j.Crashes >= q.opts.MaxCrashes:
			cause := fmt.Sprintf("crashed %d times in a row", j.Crashes)
			q.take(j)
			q.note(j, j.Attempt(), pawl.Failure{Error: cause})
			q.makeDead(j, pawl.ReasonPoison, pawl.Event{Cause: cause})
		}
	}
	return reaped
}
