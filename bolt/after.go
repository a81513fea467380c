package bolt

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// What jobs wait for are rows of [driver.Prerequisites]. A job that waits is blocked: it is in delayed, and counts for
// its key once it no longer waits. The transaction that ends a job lets those go that waited for it. If no job waits
// for another, nothing is read.

// mayAwait reports whether some job may wait for another.
func (t *txn) mayAwait() bool { return t.awaits == nil || t.awaits.Load() }

// waits reports whether a job waits for others.
func (t *txn) waits(id pawl.ID) bool { return t.mayAwait() && t.after.Waits(t.others(), id) }

func (t *txn) awaited(id pawl.ID) bool { return t.mayAwait() && t.after.Awaited(t.others(), id) }

// stateOf returns the state of a job, "" if there is none or it is damaged.
func (t *txn) stateOf(id pawl.ID) pawl.State {
	_, at, err := t.find(id)
	if err != nil {
		return ""
	}
	return at.state
}

// admitWaiting refuses new jobs that wait for jobs which are not there.
func (t *txn) admitWaiting(jobs []newJob) error {
	var earlier map[pawl.ID]bool
	for i := range jobs {
		j := &jobs[i]
		if driver.Waits(&j.Envelope) && !j.existing && !j.dropped {
			if earlier == nil {
				earlier = make(map[pawl.ID]bool)
				for k := range jobs[:i] {
					earlier[jobs[k].ID] = true
				}
			}
			known := func(id pawl.ID) bool { return earlier[id] || t.jobs.Get(id[:]) != nil }
			if err := driver.CheckPrerequisites(&j.Envelope, known, t.awaited); err != nil {
				return err
			}
		}
		if earlier != nil {
			earlier[j.ID] = true
		}
	}
	return nil
}

// prerequire notes what a new job waits for, before it has a place.
func (t *txn) prerequire(e *pawl.Envelope) {
	if !driver.Waits(e) {
		return
	}
	if t.awaits != nil {
		t.awaits.Store(true) // if the transaction fails, the look finds nothing
	}
	t.fail(t.after.Add(t.others(), e, t.stateOf))
}

// await blocks a job that waits for others, which its line counts as ready already.
func (t *txn) await(ready []byte, row indexRow) {
	t.countBlocked(lineAt(ready), 1)
	key := awaitKey(nil, ready)
	t.put(t.delayed, key, seal(key, delayedRow{row, ready}.append(nil, key)))
}

// hasEnded notes that a job has succeeded or is dead.
func (t *txn) hasEnded(id pawl.ID, state pawl.State) {
	if !t.groupless && t.mayAwait() && t.after.Ended(t.others(), id, state) {
		t.changed = true
	}
}

// forgetPrerequisites removes what a job waits for, which leaves the queue.
func (t *txn) forgetPrerequisites(id pawl.ID) {
	if t.mayAwait() {
		t.fail(t.after.Forget(t.others(), id))
	}
}

// finishEnds does what follows from the ends of jobs: it counts them in their groups, and lets the jobs go
// that waited for them.
func (t *txn) finishEnds() {
	for t.err == nil && (t.groups.Any() || t.after.Pending()) {
		t.finishGroups()
		t.fail(t.after.Flush(t.others(), t.release, t.damagedRow))
	}
}

// release makes a job ready that no longer waits for another. A job that is delayed or dead is not blocked.
func (t *txn) release(id pawl.ID) {
	j, at, err := t.find(id)
	if err != nil {
		t.damagedRow(err)
		return
	}
	if at.table != t.delayed || at.key[0] != waitsForJobs {
		return
	}
	t.delete(at.table, at.key)
	t.countBlocked(at.line, -1)
	t.giveTag(&j, at.line.queue)
	t.becomeReady(readyKey(nil, at.line, j.Envelope), indexRow{id, j.flags()}, j.Envelope)
}

// prerequisites returns what a job waits for.
func (s *store) prerequisites(id pawl.ID) ([]driver.Prerequisite, error) {
	all, err := driver.ReadPrerequisites(s.others(), id)
	for i := range all {
		if _, at, err := s.placed(all[i].ID); err == nil {
			all[i].State = at.state
		}
	}
	return all, err
}

// Dependents returns the jobs that wait for the success of a job, directly or through other jobs: the nearest first,
// without dead ones. The job itself may be gone. [pawl.ErrBatchTooLarge] means that there are more than
// [pawl.MaxBatchJobs].
func (r *reader) Dependents(ctx context.Context, id pawl.ID) (all []pawl.ID, err error) {
	err = r.view(ctx, func(s *store) error {
		all, err = driver.Dependents(id, func(needed []pawl.ID, found func(pawl.ID, pawl.State)) error {
			for _, id := range needed {
				waiting, err := driver.ReadDependents(s.others(), id)
				if err != nil {
					return err
				}
				for _, id := range waiting {
					if _, at, err := s.placed(id); err == nil {
						found(id, at.state)
					}
				}
			}
			return nil
		})
		return err
	})
	return all, err
}
