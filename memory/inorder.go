package memory

import "github.com/gopawl/pawl"

// inOrder is what a queue knows about the keys whose jobs run in order.
type inOrder struct {
	holders map[string]*job  // the job of each key that was leased and is not done
	ready   map[string]*list // the ready jobs of each key, in the order in which they became due
}

func newInOrder() inOrder {
	return inOrder{make(map[string]*job), make(map[string]*list)}
}

// inOrder reports whether a job runs in order with others of its key.
func (l *line) inOrder(j *job) bool { return j.Key != "" && l.limits.InOrder != pawl.OrderNone }

// enterOrder notes that a job enters its state.
func (l *line) enterOrder(j *job) {
	if !l.inOrder(j) {
		return
	}
	switch j.State {
	case pawl.Ready:
		if j.waits() {
			return
		}
		if l.order.ready[j.Key] == nil {
			l.order.ready[j.Key] = &list{compare: byDue}
		}
		l.order.ready[j.Key].add(j)
	case pawl.Leased:
		j.HoldsKey, l.order.holders[j.Key] = true, j
	case pawl.Dead:
		if l.limits.InOrder != pawl.OrderHold || !j.HoldsKey {
			l.freeKey(j)
		}
	case pawl.Completed:
		l.freeKey(j)
	}
}

// leaveOrder notes that a job leaves its state.
func (l *line) leaveOrder(j *job) {
	if j.State != pawl.Ready || j.waits() || !l.inOrder(j) {
		return
	}
	ready := l.order.ready[j.Key]
	if ready.remove(j); len(ready.jobs) == 0 {
		delete(l.order.ready, j.Key)
	}
}

// freeKey lets the next job of a key run if this one holds it.
func (l *line) freeKey(j *job) {
	if l.order.holders[j.Key] == j {
		delete(l.order.holders, j.Key)
	}
	j.HoldsKey = false
}

// head returns the job that holds a key, or else the first of its ready jobs, or nil.
func (l *line) head(key string) *job {
	if holder := l.order.holders[key]; holder != nil {
		return holder
	}
	if ready := l.order.ready[key]; ready != nil {
		return ready.jobs[0]
	}
	return nil
}

// roomInOrder returns 1 for the ready job of a key that may run, and 0 for the
// others.
func (l *line) roomInOrder(j *job) int {
	if l.head(j.Key) == j && j.State == pawl.Ready {
		return 1
	}
	return 0
}
