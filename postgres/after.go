package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A job that waits for others has a row for each prerequisite that is not met. While such a job is ready, it is
// at the place placeWaiting, so no fetch walks over it. The row of a prerequisite has a mark, so the transaction
// that ends a job reads these rows only if others wait for the job.
//
// A transaction that enqueues a job after others first locks those others. So it runs before they end, and marks
// them, or it runs after they ended, and sees how they ended. A transaction that ends a job locks the jobs that
// wait for it before it reads what else they wait for. So if two transactions end the last two prerequisites of
// a job, one of them sees both ends.

const (
	// sqlDependents locks the jobs that wait for the jobs $1.
	sqlDependents = `SELECT ` + columns + ` FROM pawl.job j WHERE j.id IN (SELECT a.job FROM pawl.after a WHERE a.needed = ANY($1))
ORDER BY j.id FOR UPDATE`

	sqlNeeded       = `SELECT job, needed, any_end FROM pawl.after WHERE job = ANY($1) ORDER BY job, needed`
	sqlAwaited      = `SELECT needed FROM pawl.after WHERE needed = ANY($1)`
	sqlAddNeeded    = `INSERT INTO pawl.after (job, needed, any_end) SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bool[])`
	sqlMeet         = `DELETE FROM pawl.after a USING unnest($1::uuid[], $2::uuid[]) AS t(job, needed) WHERE a.job = t.job AND a.needed = t.needed`
	sqlForgetNeeded = `DELETE FROM pawl.after WHERE job = ANY($1)`
	sqlRelease      = `UPDATE pawl.job SET waits = NULL, place = CASE WHEN place <> -1 THEN place WHEN turn IS NOT NULL AND holds IS NULL THEN -2 ELSE 0 END WHERE id = ANY($1)`
	sqlMarkWaiting  = `UPDATE pawl.job SET waits = true WHERE id = ANY($1)`
	sqlMarkAwaited  = `UPDATE pawl.job SET awaited = true WHERE id = ANY($1) AND awaited IS NULL`

	// sqlMarkNamed marks new jobs that others already waited for.
	sqlMarkNamed = `UPDATE pawl.job SET awaited = true WHERE id IN (SELECT needed FROM pawl.after WHERE needed = ANY($1))`

	// sqlLockJobs excludes all other transactions that look for a job, until the commit. A restored job may wait for a
	// job that does not exist. Then there is no row to lock, and another transaction may be about to store it.
	sqlLockJobs = `LOCK TABLE pawl.job IN EXCLUSIVE MODE`

	// sqlHeldUp names the jobs among $1 for which another job waits that a different session has locked. It locks the
	// other waiting jobs.
	sqlHeldUp = `WITH free AS (SELECT j.id FROM pawl.job j WHERE j.id IN (SELECT a.job FROM pawl.after a WHERE a.needed = ANY($1))
	ORDER BY j.id FOR UPDATE SKIP LOCKED)
SELECT DISTINCT a.needed FROM pawl.after a JOIN pawl.job j ON j.id = a.job
WHERE a.needed = ANY($1) AND NOT EXISTS (SELECT FROM free WHERE free.id = a.job)`

	// sqlObstacles reads the prerequisites of a job, and where they are.
	sqlObstacles = `SELECT a.needed, a.any_end, j.place, j.token IS NOT NULL FROM pawl.after a LEFT JOIN pawl.job j ON j.id = a.needed
WHERE a.job = $1 ORDER BY 1`

	// sqlWaiting reads which jobs wait for the success of the jobs $1, and where they are.
	sqlWaiting = `SELECT j.id, j.place, j.token IS NOT NULL FROM pawl.after a JOIN pawl.job j ON j.id = a.job
WHERE a.needed = ANY($1) AND NOT a.any_end ORDER BY 1`
)

// prerequisites is what a transaction knows about jobs that wait for others.
type prerequisites struct {
	pairs    []pair           // of new jobs, to write
	ended    []endedJob       // jobs that others may wait for
	met      []pair           // to remove
	released []pawl.ID        // jobs that no longer wait, to write
	releases int              // how many jobs it released
	awaited  map[pawl.ID]bool // jobs that others may wait for, even if their rows have no mark
	named    map[pawl.ID]bool // new jobs whose IDs were given
}

// pair is a job and a prerequisite that is not met.
type pair struct {
	job *job
	driver.Prerequisite
}

type endedJob struct {
	id    pawl.ID
	state pawl.State
}

func newPrerequisites() prerequisites {
	return prerequisites{awaited: make(map[pawl.ID]bool), named: make(map[pawl.ID]bool)}
}

// readAwaited reads which of these jobs others wait for.
func (t *txn) readAwaited(ids []pawl.ID) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlAwaited), uuids(ids))
	if err != nil {
		return err
	}
	var id pgtype.UUID
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		t.awaited[id.Bytes] = true
		return nil
	})
	return err
}

// Await records what a new job waits for.
func (t *txn) Await(j *job) {
	for p := range driver.PrerequisitesOf(&j.Envelope) {
		state := pawl.State("")
		if needed := t.Get(p.ID); needed != nil {
			state = needed.State
		}
		if !p.Met(state) {
			j.waits, t.awaited[p.ID] = true, true
			t.pairs = append(t.pairs, pair{j, p})
		}
	}
}

// Awaited reports whether other jobs wait for a job that waits itself.
func (t *txn) Awaited(id pawl.ID) bool { return t.awaited[id] }

// Ended records that a job has succeeded or is dead. It unblocks the new jobs that waited for it.
func (t *txn) Ended(id pawl.ID, state pawl.State) {
	if !t.awaited[id] && !t.jobs[id].awaited {
		return
	}
	t.ended = append(t.ended, endedJob{id, state})
	var met []*job
	t.pairs = slices.DeleteFunc(t.pairs, func(p pair) bool {
		is := p.ID == id && p.Met(state)
		if is {
			met = append(met, p.job)
		}
		return is
	})
	for _, j := range met {
		j.waits = slices.ContainsFunc(t.pairs, func(p pair) bool { return p.job == j })
	}
}

// finishEnds unblocks the stored jobs that waited for the ended jobs.
func (t *txn) finishEnds() error {
	ended := t.ended
	t.ended = nil
	if len(ended) == 0 {
		return nil
	}
	var ids []pawl.ID
	for _, e := range ended {
		ids = append(ids, e.id)
	}
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlDependents), uuids(ids))
	if err != nil {
		return err
	}
	jobs, err := t.scan(rows)
	if err != nil {
		return err
	}
	jobs = slices.DeleteFunc(jobs, func(j *job) bool { return j.gone || !j.stored || !j.waits })
	if len(jobs) == 0 {
		return nil
	}
	needed, err := t.q.neededBy(t.ctx, t.tx, jobs)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		met := slices.DeleteFunc(slices.Clone(needed[j.ID]), func(p driver.Prerequisite) bool {
			return !slices.ContainsFunc(ended, func(e endedJob) bool { return e.id == p.ID && p.Met(e.state) })
		})
		for _, p := range met {
			t.met = append(t.met, pair{j, p})
		}
		if len(met) == len(needed[j.ID]) {
			t.letGo(j)
		}
	}
	return nil
}

// movable returns the jobs that may end without waiting for a lock of another session, either on their groups or on
// jobs that wait for them.
func (t *txn) movable(jobs []*job) ([]*job, error) {
	jobs, err := t.countable(jobs)
	var ids []pawl.ID
	for _, j := range jobs {
		if j.awaited {
			ids = append(ids, j.ID)
		}
	}
	if err != nil || len(ids) == 0 {
		return jobs, err
	}
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlHeldUp), uuids(ids))
	if err != nil {
		return nil, err
	}
	heldUp := make(map[pawl.ID]bool)
	var id pgtype.UUID
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		heldUp[id.Bytes] = true
		return nil
	})
	return slices.DeleteFunc(jobs, func(j *job) bool { return heldUp[j.ID] }), err
}

// letGo records that a stored job no longer waits. A delayed or dead job keeps its place.
func (t *txn) letGo(j *job) {
	j.waits = false
	t.released = append(t.released, j.ID)
	t.releases++
	if j.State == pawl.Ready {
		t.noteTurn(j)
		t.readied(j)
		if t.isFair(j.Queue) {
			t.Put(j, pawl.Ready)
		}
	}
}

// writePrerequisites stores what jobs wait for, and what they no longer wait for.
func (t *txn) writePrerequisites(jobs []*job) {
	var forgotten, waiting, named []pawl.ID
	for _, j := range jobs {
		switch {
		case j.gone && j.stored && j.waits:
			forgotten = append(forgotten, j.ID)
		case j.gone || j.stored:
		default:
			if j.waits {
				waiting = append(waiting, j.ID)
			}
			if t.named[j.ID] {
				named = append(named, j.ID)
			}
		}
	}
	if len(forgotten) > 0 {
		t.write(sqlForgetNeeded, uuids(forgotten))
	}
	if len(t.met) > 0 {
		ids, needed, _ := columnsOf(t.met)
		t.write(sqlMeet, uuids(ids), uuids(needed))
	}
	if len(t.released) > 0 {
		t.write(sqlRelease, uuids(t.released))
	}
	pairs := slices.DeleteFunc(t.pairs, func(p pair) bool { return p.job.gone })
	if len(pairs) > 0 {
		ids, needed, anyEnd := columnsOf(pairs)
		t.write(sqlAddNeeded, uuids(ids), uuids(needed), anyEnd)
		t.write(sqlMarkWaiting, uuids(waiting))
		t.write(sqlMarkAwaited, uuids(needed))
	}
	if len(named) > 0 {
		t.write(sqlMarkNamed, uuids(named))
	}
	t.pairs, t.met, t.released = nil, nil, nil
}

func columnsOf(pairs []pair) (ids, needed []pawl.ID, anyEnd []bool) {
	for _, p := range pairs {
		ids, needed, anyEnd = append(ids, p.job.ID), append(needed, p.ID), append(anyEnd, p.Any)
	}
	return ids, needed, anyEnd
}

// neededBy reads what jobs wait for.
func (q *Queue) neededBy(ctx context.Context, tx Tx, jobs []*job) (map[pawl.ID][]driver.Prerequisite, error) {
	ids := make([]pawl.ID, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	rows, err := tx.Query(ctx, q.sql(sqlNeeded), uuids(ids))
	if err != nil {
		return nil, err
	}
	needed := make(map[pawl.ID][]driver.Prerequisite)
	var id, other pgtype.UUID
	var anyEnd bool
	_, err = pgx.ForEachRow(rows, []any{&id, &other, &anyEnd}, func() error {
		needed[id.Bytes] = append(needed[id.Bytes], driver.Prerequisite{ID: other.Bytes, Any: anyEnd})
		return nil
	})
	return needed, err
}

// readPrerequisites fills in what jobs wait for.
func (q *Queue) readPrerequisites(ctx context.Context, tx Tx, jobs []*job) error {
	if len(jobs) == 0 {
		return nil
	}
	needed, err := q.neededBy(ctx, tx, jobs)
	for _, j := range jobs {
		driver.SetPrerequisites(&j.Envelope, needed[j.ID])
	}
	return err
}

// prerequisitesOf reads the prerequisites of a job, with their states.
func (q *Queue) prerequisitesOf(ctx context.Context, tx Tx, id pawl.ID) (all []driver.Prerequisite, err error) {
	rows, err := tx.Query(ctx, q.sql(sqlObstacles), uuids([]pawl.ID{id})[0])
	if err != nil {
		return nil, err
	}
	var needed pgtype.UUID
	var p driver.Prerequisite
	var place *int16
	var leased bool
	_, err = pgx.ForEachRow(rows, []any{&needed, &p.Any, &place, &leased}, func() error {
		p.ID, p.State = needed.Bytes, ""
		if place != nil {
			p.State = stateOf(*place, leased)
		}
		all = append(all, p)
		return nil
	})
	return all, err
}

// Dependents returns the jobs that wait for the success of a job, directly or through other jobs: the nearest first,
// without dead ones. The job itself may be gone. [pawl.ErrBatchTooLarge] means that there are more than
// [pawl.MaxBatchJobs].
func (q *Queue) Dependents(ctx context.Context, id pawl.ID) (all []pawl.ID, err error) {
	err = q.view(ctx, func(tx *viewTx) error {
		all, err = driver.Dependents(id, func(needed []pawl.ID, found func(pawl.ID, pawl.State)) error {
			rows, err := tx.Query(ctx, q.sql(sqlWaiting), uuids(needed))
			if err != nil {
				return err
			}
			var id pgtype.UUID
			var place int16
			var leased bool
			_, err = pgx.ForEachRow(rows, []any{&id, &place, &leased}, func() error {
				found(id.Bytes, stateOf(place, leased))
				return nil
			})
			return err
		})
		return err
	})
	return all, err
}
