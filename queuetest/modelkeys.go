package queuetest

import (
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
)

func (j *modelJob) unique() modelKey { return uniqueOf(&j.Envelope) }

func uniqueOf(e *pawl.Envelope) modelKey { return modelKey{e.Queue, e.Kind, e.UniqueKey} }

func (j *modelJob) effect() modelKey { return modelKey{kind: j.Kind, key: j.IdempotencyKey} }

// hold makes a job the one that took its unique key last.
func (m *model) hold(j *modelJob) {
	if j.UniqueKey != "" {
		m.holders[j.unique()] = j
	}
}

// isDone says whether the effect of a job is there already.
func (m *model) isDone(j *modelJob) bool {
	return j.IdempotencyKey != "" && m.done[j.effect()].After(m.now)
}

// isRunning says whether another job of the same effect is leased.
func (m *model) isRunning(j *modelJob) bool {
	if j.IdempotencyKey == "" {
		return false
	}
	for _, other := range m.jobs {
		if other.State == pawl.Leased && other.effect() == j.effect() {
			return true
		}
	}
	return false
}

// admits is the error that an enqueue of valid jobs must give, all of whose queues are
// named. It changes nothing.
func (m *model) admits(batch []*pawl.Envelope) error {
	taken := make(map[modelKey]pawl.State)
	for key, j := range m.holders {
		taken[key] = j.State
	}
	for _, e := range batch {
		state, held := taken[uniqueOf(e)]
		switch held = held && e.UniqueKey != ""; {
		case held && e.BlockedBy(state) && e.OnConflict == pawl.UseExisting:
			continue
		case held && e.BlockedBy(state):
			if e.OnConflict == pawl.Reject || state == pawl.Leased {
				return pawl.ErrConflict
			}
		case m.find(e.ID) != nil:
			return pawl.ErrConflict
		}
		if e.UniqueKey != "" {
			taken[uniqueOf(e)] = pawl.Ready
			if e.Delay > 0 || e.NotBefore.After(m.now) {
				taken[uniqueOf(e)] = pawl.Delayed
			}
		}
	}
	return nil
}

// enqueue takes in jobs that it admits: as they were given, and as the queue has
// filled them in.
func (m *model) enqueue(given, filled []*pawl.Envelope) error {
	before := len(m.events)
	for i, e := range filled {
		event := pawl.EventEnqueued
		if h := m.holders[uniqueOf(e)]; h != nil && e.UniqueKey != "" && e.BlockedBy(h.State) {
			if e.OnConflict == pawl.UseExisting {
				want := *given[i]
				want.ID = h.ID
				if d := difference(e, &want); d != "" || !e.Existing {
					return fmt.Errorf("a job of which job %s has the unique key: existing %v, %s", h.ID, e.Existing, d)
				}
				continue
			}
			if e.ID != h.ID {
				return fmt.Errorf("job %s was replaced by one with the ID %s", h.ID, e.ID)
			}
			m.remove(h)
			event = pawl.EventReplaced
			// A job of this batch that a later one replaces never was: the last one is told.
			if k := slices.IndexFunc(m.events[before:], func(e pawl.Event) bool { return e.Job.ID == h.ID }); k >= 0 {
				event = m.events[before+k].Type
				m.events = slices.Delete(m.events, before+k, before+k+1)
			}
		}
		if e.Existing {
			return fmt.Errorf("job %s says that there is another, which there is not", e.ID)
		}
		j := &modelJob{Envelope: *copied(e)}
		m.jobs = append(m.jobs, j)
		m.hold(j)
		// It is told as it is placed, and its death, if its deadline has passed, after it.
		m.emit(j, pawl.Event{Type: event})
		m.place(j, j.NotBefore)
	}
	return nil
}
