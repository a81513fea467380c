package queuetest

import (
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

func (j *modelJob) unique() modelKey { return uniqueOf(&j.Envelope) }

func uniqueOf(e *pawl.Envelope) modelKey { return modelKey{e.Queue, e.Kind, e.UniqueKey} }

func (j *modelJob) effect() modelKey { return modelKey{kind: j.Kind, key: j.IdempotencyKey} }

// hold makes a job the last that took its unique key.
func (m *model) hold(j *modelJob) {
	if j.UniqueKey != "" {
		m.holders[j.unique()] = j
	}
}

// isDone reports whether the idempotency key of a job is done.
func (m *model) isDone(j *modelJob) bool {
	return j.IdempotencyKey != "" && m.done[j.effect()].After(m.now)
}

// isRunning reports whether another job of the same idempotency key is leased.
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

// admits returns the error that an enqueue of valid jobs must return. All of them name
// their queues. It changes nothing.
func (m *model) admits(batch []*pawl.Envelope) error {
	taken := make(map[modelKey]pawl.State)
	for key, j := range m.holders {
		taken[key] = j.State
	}
	for _, e := range batch {
		state, held := taken[uniqueOf(e)]
		switch held = held && e.UniqueKey != ""; {
		case held && driver.BlockedBy(e, state) && e.OnConflict == pawl.UseExisting:
			continue
		case held && driver.BlockedBy(e, state):
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

// enqueue stores jobs that the model admits. The envelopes are complete, also with
// their sequences, and the queue returned done.
func (m *model) enqueue(filled []*pawl.Envelope, done []pawl.Enqueued) error {
	before := len(m.events)
	for i, e := range filled {
		event := pawl.EventEnqueued
		if h := m.holders[uniqueOf(e)]; h != nil && e.UniqueKey != "" && driver.BlockedBy(e, h.State) {
			if e.OnConflict == pawl.UseExisting {
				if done[i] != (pawl.Enqueued{ID: h.ID, Existing: true}) {
					return fmt.Errorf("job %s has the unique key, and the enqueue returned %+v", h.ID, done[i])
				}
				continue
			}
			if e.ID != h.ID {
				return fmt.Errorf("job %s was replaced by one with the ID %s", h.ID, e.ID)
			}
			m.remove(h)
			event = pawl.EventReplaced
			// A job of this batch that a later one replaces never existed: only the
			// last one is reported.
			if k := slices.IndexFunc(m.events[before:], func(e pawl.Event) bool { return e.Job.ID == h.ID }); k >= 0 {
				event = m.events[before+k].Type
				m.events = slices.Delete(m.events, before+k, before+k+1)
			}
		}
		if done[i].Existing {
			return fmt.Errorf("job %s says that another job exists, but none does", e.ID)
		}
		j := &modelJob{Envelope: *copied(e)}
		m.jobs = append(m.jobs, j)
		m.hold(j)
		// The event shows the job in its first state. If its deadline has passed, its
		// death follows.
		m.emit(j, pawl.Event{Type: event})
		m.place(j, j.NotBefore)
	}
	return nil
}
