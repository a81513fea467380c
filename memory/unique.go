package memory

import "github.com/gopawl/pawl"

// unique is a unique key within its scope. It has one holder, the job that took it
// last; that one keeps it in every state, until another takes it or the job is
// removed. Whether it blocks another is for the other to say.
type unique struct{ queue, kind, key string }

func uniqueOf(e *pawl.Envelope) unique { return unique{e.Queue, e.Kind, e.UniqueKey} }

// holder is what matters of the holder of a unique key.
type holder struct {
	id    pawl.ID
	state pawl.State
}

// holderOf is the job that holds the unique key of e, if e has one.
func (q *Queue) holderOf(e *pawl.Envelope) (h holder, taken bool) {
	j := q.holders[uniqueOf(e)] // in which there is no key ""
	if j == nil {
		return h, false
	}
	h = holder{j.ID, j.State}
	switch { // as the job is about to be
	case j.isMortal() && q.isLate(j):
		h.state = pawl.Dead
	case j.State == pawl.Delayed && !j.NotBefore.After(q.now):
		h.state = pawl.Ready
	}
	return h, true
}

// hold makes a job the holder of its unique key.
func (q *Queue) hold(j *job) {
	if j.UniqueKey != "" {
		q.holders[uniqueOf(&j.Envelope)] = j
	}
}

// free gives up the unique key of a job that is removed, unless another took it.
func (q *Queue) free(j *job) {
	if key := uniqueOf(&j.Envelope); q.holders[key] == j {
		delete(q.holders, key)
	}
}
