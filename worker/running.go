package worker

import (
	"sync"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// running holds the jobs whose handlers have not returned, over all sessions of
// a worker. While a job is in it, the job does not run again, even if its
// handler lost its lease or was left behind by a stop. The zero value is empty.
type running struct {
	mu    sync.Mutex
	jobs  map[pawl.ID]*attempt
	stuck int // how many of these handlers are stuck: their jobs were settled without them
}

// add records that a handler starts. It returns false if an earlier handler of the same job
// has not returned.
func (r *running) add(a *attempt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.jobs[a.ID]; again {
		return false
	}
	if r.jobs == nil {
		r.jobs = make(map[pawl.ID]*attempt)
	}
	r.jobs[a.ID] = a
	return true
}

// returning reports whether the last handler of a job has settled the job itself and is
// about to return. The next attempt then waits for that return.
func (r *running) returning(id pawl.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.jobs[id]
	return last != nil && driver.Settled(last.Lease)
}

// giveUp claims an attempt in place of its handler, which counts as stuck after that. It
// returns how many handlers are stuck, and false if the handler returned first.
func (r *running) giveUp(a *attempt) (stuck int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !a.claim() {
		return 0, false
	}
	r.stuck++
	return r.stuck, true
}

// remove records that a handler has returned, whether it was stuck or not.
func (r *running) remove(id pawl.ID, givenUp bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, id)
	if givenUp {
		r.stuck--
	}
}

func (r *running) stuckNow() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stuck
}

// count returns how many handlers are busy, and how many are stuck.
func (r *running) count() (busy, stuck int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.jobs) - r.stuck, r.stuck
}
