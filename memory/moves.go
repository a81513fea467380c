package memory

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The moves between the states. The caller holds the mutex and has checked that
// the move applies. A job is taken out of its list, changed, and put into the
// next.

// take takes a job out of the list of its state.
func (q *Queue) take(j *job) {
	q.listOf(j).remove(j)
	j.line.count(j, -1)
	j.line.countKey(j, -1)
	j.line.leaveOrder(j)
	j.line.countTagged(j, -1)
	if j.isMortal() {
		q.mortal.remove(j)
	}
}

// put puts a job that is in no list into the list of a state.
func (q *Queue) put(j *job, state pawl.State) {
	j.State = state
	if state == pawl.Ready && !j.waits() {
		j.line.tag(j, q.moves.Now)
	}
	j.line.countTagged(j, 1)
	j.line.enterOrder(j)
	q.listOf(j).add(j)
	j.line.count(j, 1)
	j.line.countKey(j, 1)
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

// promote makes due jobs ready. NotBefore stays: a job is ready since it was due.
func (q *Queue) promote() {
	for len(q.delayed.jobs) > 0 && !q.delayed.jobs[0].NotBefore.After(q.moves.Now) {
		j := q.delayed.jobs[0]
		q.take(j)
		q.put(j, pawl.Ready)
	}
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

// reap takes back the leases that have expired.
func (q *Queue) reap() (reaped int) {
	for now := time.Now(); len(q.leased.jobs) > 0 && !q.leased.jobs[0].expires.After(now); reaped++ {
		q.moves.Crash(q.leased.jobs[0], pawl.EventReaped)
	}
	return reaped
}
