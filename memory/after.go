package memory

import (
	"context"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// After and AfterAny of a job have what it still waits for. While it waits, it stays in its list, and a fetch
// passes it over.

type ended struct {
	id    pawl.ID
	state pawl.State
}

func (j *job) waits() bool { return driver.Waits(&j.Envelope) }

// stateOf returns the state of a job, "" if there is none.
func (q *Queue) stateOf(id pawl.ID) pawl.State {
	if j := q.jobs[id]; j != nil {
		return j.State
	}
	return ""
}

// Await notes what a new job waits for.
func (t txn) Await(j *job) {
	if !j.waits() {
		return
	}
	var needed []driver.Prerequisite
	for p := range driver.PrerequisitesOf(&j.Envelope) {
		if !p.Met(t.stateOf(p.ID)) {
			needed = append(needed, p)
			t.dependents[p.ID] = append(t.dependents[p.ID], j)
		}
	}
	driver.SetPrerequisites(&j.Envelope, needed)
}

// Awaited reports whether other jobs wait for a job.
func (t txn) Awaited(id pawl.ID) bool { return len(t.dependents[id]) > 0 }

// Ended notes that a job has succeeded or is dead.
func (t txn) Ended(id pawl.ID, state pawl.State) {
	if t.Awaited(id) {
		t.ended = append(t.ended, ended{id, state})
	}
}

// forget removes what a job waits for, when the job leaves the queue.
func (q *Queue) forget(j *job) {
	if !j.waits() {
		return
	}
	for p := range driver.PrerequisitesOf(&j.Envelope) {
		q.setDependents(p.ID, slices.DeleteFunc(q.dependents[p.ID], func(other *job) bool { return other == j }))
	}
	j.After, j.AfterAny = nil, nil
}

func (q *Queue) setDependents(id pawl.ID, jobs []*job) {
	if q.dependents[id] = jobs; len(jobs) == 0 {
		delete(q.dependents, id)
	}
}

// release unblocks the jobs whose prerequisites are met.
func (q *Queue) release() {
	for len(q.ended) > 0 {
		e := q.ended[0]
		q.ended = q.ended[1:]
		q.setDependents(e.id, slices.DeleteFunc(q.dependents[e.id], func(j *job) bool {
			p := driver.Prerequisite{ID: e.id, Any: !slices.Contains(j.After, e.id)}
			met := p.Met(e.state)
			if met {
				q.meet(j, e.id)
			}
			return met
		}))
	}
}

// meet notes that a prerequisite is met. A job that no longer waits takes its turn with the other jobs of its
// key.
func (q *Queue) meet(j *job, id pawl.ID) {
	ready := j.State == pawl.Ready
	if ready {
		q.take(j)
	}
	is := func(other pawl.ID) bool { return other == id }
	j.After, j.AfterAny = slices.DeleteFunc(j.After, is), slices.DeleteFunc(j.AfterAny, is)
	if ready {
		q.put(j, pawl.Ready)
	}
}

// prerequisites returns what a job waits for.
func (q *Queue) prerequisites(j *job) (all []driver.Prerequisite) {
	for p := range driver.PrerequisitesOf(&j.Envelope) {
		p.State = q.stateOf(p.ID)
		all = append(all, p)
	}
	return all
}

// Dependents returns the jobs that wait for the success of a job, directly or through other jobs: the nearest
// first, and without dead ones. The job itself may be gone. [pawl.ErrBatchTooLarge] means that there are more
// than [pawl.MaxBatchJobs].
func (q *Queue) Dependents(ctx context.Context, id pawl.ID) (all []pawl.ID, err error) {
	err = q.look(ctx, func() error {
		all, err = driver.Dependents(id, func(needed []pawl.ID, found func(pawl.ID, pawl.State)) error {
			for _, id := range needed {
				for _, j := range q.dependents[id] {
					if slices.Contains(j.After, id) {
						found(j.ID, j.State)
					}
				}
			}
			return nil
		})
		return err
	})
	return all, err
}
