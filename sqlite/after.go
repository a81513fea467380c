package sqlite

import (
	"context"
	sqldriver "database/sql/driver"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A job that waits for others has a row for each prerequisite that is not met. While such a job is ready, it is
// at the place placeWaiting, so no fetch walks over it. The transaction that ends a job removes the rows that
// name it, and releases the jobs that have no row left. If no job waits for another, nothing else is read.

const (
	sqlAwaits      = `SELECT EXISTS (SELECT 1 FROM pawl_after)`
	sqlAwaitedByID = `SELECT EXISTS (SELECT 1 FROM pawl_after WHERE needed = ?)`
	sqlWaits       = `SELECT EXISTS (SELECT 1 FROM pawl_after WHERE job = ?)`
	sqlMeet        = `DELETE FROM pawl_after WHERE needed = ? AND (any_end OR ?) RETURNING job`
	sqlRelease     = `UPDATE pawl_job SET place = 2 WHERE id = ?1 AND place = 1 AND NOT EXISTS (SELECT 1 FROM pawl_after WHERE job = ?1)`

	// sqlNeeded reads the prerequisites of a job, and where they are.
	sqlNeeded = `SELECT needed, any_end, (SELECT place FROM pawl_job WHERE id = needed) FROM pawl_after WHERE job = ? ORDER BY needed`

	// sqlDependents reads which jobs wait for the success of a job, and where they are.
	sqlDependents = `SELECT id, place FROM pawl_after JOIN pawl_job ON id = job WHERE needed = ? AND NOT any_end ORDER BY id`
)

// mayAwait reports whether some job may wait for another. As long as no other connection has committed, the
// scheduler may know that none does.
func (t *txn) mayAwait() bool {
	if t.awaits == nil {
		found := t.q.noneAwaits
		if !found {
			found = !t.exists(sqlAwaits)
		}
		t.noteAwaits(!found)
	}
	return *t.awaits
}

func (t *txn) noteAwaits(some bool) {
	t.awaits = &some
	t.after = append(t.after, func() { t.q.noneAwaits = !some })
}

// exists returns the result of a query for one boolean value.
func (t *txn) exists(statement string, args ...sqldriver.Value) bool {
	found := int64(0)
	t.query(statement, one(&found), args...)
	return found != 0
}

// waits reports whether a job waits for others.
func (t *txn) waits(id pawl.ID) bool { return t.mayAwait() && t.exists(sqlWaits, id[:]) }

// Awaited reports whether other jobs wait for a job.
func (t *txn) Awaited(id pawl.ID) bool { return t.mayAwait() && t.exists(sqlAwaitedByID, id[:]) }

// Limits returns no limits: the queue has none, and refuses a job with a cost.
func (t *txn) Limits(string) pawl.Limits { return pawl.Limits{} }

// Await records what a new job waits for.
func (t *txn) Await(j *job) {
	for p := range driver.PrerequisitesOf(&j.Envelope) {
		state := pawl.State("")
		if needed := t.Get(p.ID); needed != nil {
			state = needed.State
		}
		if !p.Met(state) {
			t.noteAwaits(true)
			t.exec(`INSERT INTO pawl_after (job, needed, any_end) VALUES (?, ?, ?)`, j.ID[:], p.ID[:], p.Any)
		}
	}
}

// Ended releases the jobs that waited for a job that has succeeded or is dead.
func (t *txn) Ended(id pawl.ID, state pawl.State) {
	if !t.mayAwait() {
		return
	}
	var met [][]byte
	t.query(sqlMeet, func(v []sqldriver.Value) error {
		met = append(met, bytesOf(v[0]))
		return nil
	}, id[:], state == pawl.Completed)
	for _, waited := range met {
		if t.exec(sqlRelease, waited) > 0 {
			t.released++
		}
	}
}

// forget removes the prerequisites of a job that leaves the queue.
func (t *txn) forget(id pawl.ID) {
	if t.mayAwait() {
		t.exec(`DELETE FROM pawl_after WHERE job = ?`, id[:])
	}
}

// readNeeded reads what a job waits for.
func readNeeded(c conn, id pawl.ID) (all []driver.Prerequisite, err error) {
	err = c.query(sqlNeeded, func(v []sqldriver.Value) error {
		p := driver.Prerequisite{ID: pawl.ID(bytesOf(v[0])), Any: number(v[1]) != 0}
		if v[2] != nil {
			p.State = stateOf(number(v[2]))
		}
		all = append(all, p)
		return nil
	}, id[:])
	return all, err
}

// Dependents returns the jobs that wait for the success of a job, directly or through other jobs: the nearest first,
// without dead ones. The job itself may be gone. [pawl.ErrBatchTooLarge] means that there are more than
// [pawl.MaxBatchJobs].
func (q *Queue) Dependents(ctx context.Context, id pawl.ID) (all []pawl.ID, err error) {
	err = q.view(ctx, func(c conn) error {
		all, err = driver.Dependents(id, func(needed []pawl.ID, found func(pawl.ID, pawl.State)) error {
			for _, id := range needed {
				if err := c.query(sqlDependents, func(v []sqldriver.Value) error {
					found(pawl.ID(bytesOf(v[0])), stateOf(number(v[1])))
					return nil
				}, id[:]); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
	return all, err
}
