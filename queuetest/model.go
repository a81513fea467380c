package queuetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// model is the contract in its shortest form: what each call does to the jobs, and
// what time does. It has no mutex, no order and no index, so that nothing in it can
// be wrong in a clever way.
type model struct {
	lease      time.Duration
	maxCrashes int // negative: no cap
	jobs       []*modelJob
}

// modelJob is a job as inspection must show it.
type modelJob struct {
	pawl.Envelope
	token    uint64
	expires  time.Time
	poisoned bool // since it was compared last
}

// find is the job of an ID, or nil.
func (m *model) find(id pawl.ID) *modelJob {
	if i := slices.IndexFunc(m.jobs, func(j *modelJob) bool { return j.ID == id }); i >= 0 {
		return m.jobs[i]
	}
	return nil
}

// held is the job of a lease that counts, or nil.
func (m *model) held(l *pawl.Lease) *modelJob {
	if j := m.find(l.ID); j != nil && j.State == pawl.Leased && j.token == l.Token {
		return j
	}
	return nil
}

// advance does what time does until now.
func (m *model) advance(now time.Time) {
	for _, j := range m.jobs {
		switch {
		case j.State == pawl.Delayed && !j.NotBefore.After(now):
			j.State = pawl.Ready
		case j.State == pawl.Leased && !j.expires.After(now):
			m.crash(j, j.expires)
		}
	}
}

// next is when the next job is due or the next lease expires, zero for never.
func (m *model) next() (next time.Time) {
	for _, j := range m.jobs {
		at := time.Time{}
		switch j.State {
		case pawl.Delayed:
			at = j.NotBefore
		case pawl.Leased:
			at = j.expires
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// restart does what the end of the process does.
func (m *model) restart(now time.Time) {
	for _, j := range m.jobs {
		if j.State == pawl.Leased {
			m.crash(j, now)
		}
	}
}

func (m *model) crash(j *modelJob, at time.Time) {
	j.State, j.LeasedSince = pawl.Ready, time.Time{}
	if j.Crashes++; m.maxCrashes >= 0 && j.Crashes >= m.maxCrashes {
		j.State, j.Death, j.poisoned = pawl.Dead, &pawl.Death{Reason: pawl.ReasonPoison, At: at}, true
	}
}

// enqueue takes jobs in, as the queue has filled them in.
func (m *model) enqueue(jobs []*pawl.Envelope, now time.Time) {
	for _, e := range jobs {
		j := &modelJob{Envelope: *e}
		j.schedule(now, j.NotBefore)
		m.jobs = append(m.jobs, j)
	}
}

// schedule makes a job wait for a time, or ready when that is no later than now.
func (j *modelJob) schedule(now, due time.Time) {
	if j.NotBefore, j.State = due, pawl.Ready; due.After(now) {
		j.State = pawl.Delayed
	}
}

// settle ends the lease of a job by a verb. Delay is that of a nack or a snooze.
func (m *model) settle(j *modelJob, verb string, delay time.Duration, now time.Time) {
	j.LeasedSince, j.Crashes = time.Time{}, 0
	if verb == "nack" || verb == "abandon" {
		failed(&j.Envelope, now, errBoom.Error())
	}
	switch verb {
	case "ack":
		m.jobs = slices.DeleteFunc(m.jobs, func(other *modelJob) bool { return other == j })
	case "nack", "snooze":
		j.schedule(now, now.Add(delay))
	case "abandon":
		j.State, j.Death = pawl.Dead, &pawl.Death{Reason: pawl.ReasonExhausted, At: now}
	case "release":
		j.State = pawl.Ready
	case "park":
		j.State = pawl.Parked
	}
}

// unpark makes the parked jobs of some kinds ready.
func (m *model) unpark(kinds []string) (moved int) {
	for _, j := range m.jobs {
		if j.State == pawl.Parked && slices.Contains(kinds, j.Kind) {
			j.State = pawl.Ready
			moved++
		}
	}
	return moved
}

// retry is the error that a retry must give. Without one the job is ready.
func (m *model) retry(id pawl.ID, keepAttempts bool, now time.Time) error {
	j := m.find(id)
	switch {
	case j == nil:
		return pawl.ErrNotFound
	case j.State != pawl.Dead:
		return pawl.ErrConflict
	}
	j.State, j.Death, j.Crashes, j.NotBefore = pawl.Ready, nil, 0, now
	if !keepAttempts {
		j.Attempts = 0
	}
	return nil
}

// fetch checks the jobs that a fetch got, one after the other, and leases them.
func (m *model) fetch(r pawl.Request, leases []*pawl.Lease, now time.Time) error {
	idle := r.Max - r.Ahead
	round := make(map[string]bool) // queues that had their turn
	for _, l := range leases {
		j := m.find(l.ID)
		if j == nil || j.State != pawl.Ready || !slices.Contains(r.Queues, j.Queue) {
			return fmt.Errorf("job %s was leased, of which the model says %+v", l.ID, j)
		}
		if first := m.first(j.Queue, idle); first != j {
			return fmt.Errorf("job %s was leased, the first of queue %s for %d idle slots is %+v", l.ID, j.Queue, idle, first)
		}
		if round[j.Queue] {
			for _, name := range r.Queues {
				if !round[name] && m.first(name, idle) != nil {
					return fmt.Errorf("queue %s had a second turn before the first of queue %s", j.Queue, name)
				}
			}
			clear(round)
		}
		round[j.Queue] = true
		if j.Crashes > 0 {
			idle--
		}
		want := j.Envelope
		want.State, want.History = "", nil
		if d := difference(l.Envelope, &want); d != "" {
			return fmt.Errorf("the lease of job %s: %s", l.ID, d)
		}
		j.State, j.LeasedSince, j.token, j.expires = pawl.Leased, now, l.Token, now.Add(m.lease)
	}
	for _, name := range r.Queues {
		if j := m.first(name, idle); len(leases) < r.Max && j != nil {
			return fmt.Errorf("a fetch of %d jobs with %d idle slots got %d and left %+v", r.Max, r.Max-r.Ahead, len(leases), j)
		}
	}
	return nil
}

// waits says whether a fetch finds nothing and goes on waiting.
func (m *model) waits(r pawl.Request) bool {
	work := false
	for _, j := range m.jobs {
		switch {
		case !slices.Contains(r.Queues, j.Queue):
		case j.State == pawl.Ready && m.first(j.Queue, r.Max-r.Ahead) != nil:
			return false
		case j.State == pawl.Ready || j.State == pawl.Leased || j.State == pawl.Delayed && r.Wait == pawl.WaitFinished:
			work = true
		}
	}
	return work && r.Wait != pawl.WaitNot
}

// first is the job that a queue gives next, with so many idle slots; or nil.
func (m *model) first(queue string, idle int) (first *modelJob) {
	repeater := slices.ContainsFunc(m.jobs, func(j *modelJob) bool { return j.State == pawl.Leased && j.Crashes >= 2 })
	for _, j := range m.jobs {
		may := j.Crashes == 0 || idle > 0 && (j.Crashes == 1 || !repeater)
		if j.State == pawl.Ready && j.Queue == queue && may && (first == nil || j.before(first)) {
			first = j
		}
	}
	return first
}

func (j *modelJob) before(other *modelJob) bool {
	return cmp.Or(cmp.Compare(other.Priority, j.Priority), j.NotBefore.Compare(other.NotBefore), cmp.Compare(j.Seq, other.Seq)) < 0
}

// compare finds where the jobs of a queue differ from the model.
func (m *model) compare(jobs []*pawl.Envelope) error {
	if len(jobs) != len(m.jobs) {
		return fmt.Errorf("the queue has %d jobs, the model %d", len(jobs), len(m.jobs))
	}
	for _, e := range jobs {
		j := m.find(e.ID)
		if j == nil {
			return fmt.Errorf("the model has no job %s: %+v", e.ID, e)
		}
		if j.poisoned && e.Failures == j.Failures+1 {
			// The contract leaves it open whether that is an entry in the history.
			j.Failures, j.History = e.Failures, append(j.History, e.History[len(e.History)-1])
		}
		j.poisoned = false
		if d := difference(e, &j.Envelope); d != "" {
			return fmt.Errorf("job %s: %s", e.ID, d)
		}
	}
	return nil
}
