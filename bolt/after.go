package bolt

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The rows of [driver.Prerequisites] say which jobs a job waits for. A job that waits is blocked: its row is in
// delayed, and it does not count for its key. The transaction that ends a job releases the jobs that waited for it. If
// no job waits for another, nothing is read.

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

// admitWaiting refuses new jobs that wait for jobs that do not exist.
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

// prerequire stores what a new job waits for, before the job has a row in ready or delayed.
func (t *txn) prerequire(e *pawl.Envelope) {
	if !driver.Waits(e) {
		return
	}
	if t.awaits != nil {
		t.awaits.Store(true) // if the transaction fails, lookups find nothing
	}
	t.fail(t.after.Add(t.others(), e, t.stateOf))
}

// await blocks a job that waits for others. The counts of its line include the job as ready already.
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

// forgetPrerequisites removes the prerequisites of a job that leaves the queue.
func (t *txn) forgetPrerequisites(id pawl.ID) {
	if t.mayAwait() {
		t.fail(t.after.Forget(t.others(), id))
	}
}

// finishEnds handles the jobs that ended: it counts them in their groups, and releases the jobs that waited for them.
func (t *txn) finishEnds() {
	for t.err == nil && (t.groups.Any() || t.after.Pending()) {
		t.finishGroups()
		t.fail(t.after.Flush(t.others(), t.release, t.damagedRow))
	}
}

// release unblocks a job that no longer waits for another. It skips a delayed or dead job, which is not blocked.
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
