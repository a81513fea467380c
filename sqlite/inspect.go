package sqlite

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// agenda says when something falls due, for callers that inspect the queue without the scheduler.
type agenda struct {
	due    time.Time // by the wall clock
	expiry time.Time // expiry of the first lease, on monotonic time; zero without leases
}

// publish stores the agenda of the scheduler.
func (q *Queue) publish() {
	a := &agenda{due: q.due}
	for _, h := range q.held {
		if a.expiry.IsZero() || h.expires.Before(a.expiry) {
			a.expiry = h.expires
		}
	}
	q.agenda.Store(a)
}

// tick is a call that changes nothing. Its transaction carries out what is due.
type tick struct{}

func (tick) apply(*txn) error { return nil }

// look runs fn on the current state of the queue, in a read-only transaction. Due moves have been carried out before.
func (q *Queue) look(ctx context.Context, fn func(c conn) error) error {
	switch err := q.intake.Refuses(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !errors.Is(err, pawl.ErrPoisoned):
		return err
	}
	a := q.agenda.Load()
	if !a.due.After(q.opts.Now()) || !a.expiry.IsZero() && !a.expiry.After(time.Now()) {
		if err := q.submit(ctx, tick{}); err != nil {
			return err
		}
	}
	return q.view(ctx, fn)
}

// view is the part of look that reads.
func (q *Queue) view(ctx context.Context, fn func(c conn) error) (err error) {
	var c *own
	select {
	case c = <-q.readers:
	case <-q.done:
		return pawl.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { q.readers <- c }()
	if c == nil {
		if c, err = open(q.file, q.opts.Timeout, reader); err != nil {
			return explain(err)
		}
	}
	if _, err := c.exec("BEGIN"); err != nil {
		return explain(err)
	}
	defer func() {
		if _, ended := c.exec("COMMIT"); ended != nil {
			c.close()
			c = nil
		}
	}()
	return explain(fn(c))
}

// Job returns a job with its state, payload, and history. It returns [pawl.ErrNotFound] if the job is not in the queue,
// because it never was or because it is done.
func (q *Queue) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	found, err := q.lookSound(ctx, func(c conn) ([]pawl.Listed, error) {
		return readParts(c, []pawl.ID{id}, driver.AllParts)
	})
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
	case found[0].Err != nil:
		return nil, found[0].Err
	}
	return found[0].Job, nil
}

// lookSound is look for jobs. If some of them have a damaged record, it first makes these dead, and then looks again.
func (q *Queue) lookSound(ctx context.Context, fn func(c conn) ([]pawl.Listed, error)) (found []pawl.Listed, err error) {
	look := func() error {
		return q.look(ctx, func(c conn) (err error) {
			found, err = fn(c)
			return err
		})
	}
	if err := look(); err != nil {
		return nil, err
	}
	var damaged recheck
	for _, listed := range found {
		if listed.Err != nil {
			damaged = append(damaged, listed.Job.ID)
		}
	}
	if len(damaged) == 0 {
		return found, nil
	}
	if err := q.submit(ctx, damaged); err != nil {
		return nil, err
	}
	err = look()
	return found, err
}

// recheck is a call that reads jobs, so that the jobs with a damaged record become dead.
type recheck []pawl.ID

func (op recheck) apply(t *txn) error {
	for _, id := range op {
		t.Get(id)
	}
	return nil
}

const (
	sqlHistory     = `SELECT attempt, at, error, stack FROM pawl_history WHERE seq = ? ORDER BY n`
	sqlLastFailure = `SELECT attempt, at, error, stack FROM pawl_history WHERE seq = ? ORDER BY n DESC LIMIT 1`
)

// readParts reads parts of the jobs that exist, in the order of ids. An unreadable job has an error.
func readParts(c conn, ids []pawl.ID, parts driver.Parts) (found []pawl.Listed, err error) {
	statement := `SELECT ` + columns + `, NULL FROM pawl_job WHERE id = ?`
	if parts&driver.PartPayload != 0 {
		statement = `SELECT ` + columns + `, payload FROM pawl_job WHERE id = ?`
	}
	awaits := int64(0)
	if err := c.query(sqlAwaits, one(&awaits)); err != nil {
		return nil, err
	}
	for _, id := range ids {
		var j *job
		var damaged error
		err := c.query(statement, func(v []sqldriver.Value) error {
			j, damaged = jobOf(v)
			j.Payload = bytesOf(v[10])
			return nil
		}, id[:])
		switch {
		case err != nil:
			return nil, err
		case j == nil:
		case damaged != nil:
			found = append(found, pawl.Listed{Job: &pawl.Envelope{ID: id}, Err: damaged})
		default:
			if err := readHistory(c, j, parts); err != nil {
				return nil, err
			}
			if awaits != 0 {
				needed, err := readNeeded(c, id)
				if err != nil {
					return nil, err
				}
				driver.SetPrerequisites(&j.Envelope, needed)
			}
			found = append(found, pawl.Listed{Job: &j.Envelope})
		}
	}
	return found, nil
}

// readHistory fills in the history of a job, or its last entry.
func readHistory(c conn, j *job, parts driver.Parts) error {
	statement := sqlHistory
	switch {
	case j.Failures == 0 || parts&(driver.PartHistory|driver.PartLastFailure) == 0:
		return nil
	case parts&driver.PartHistory == 0:
		statement = sqlLastFailure
	}
	return c.query(statement, func(v []sqldriver.Value) error {
		j.History = append(j.History, pawl.Failure{
			Attempt: int(number(v[0])), At: timeOf(number(v[1])), Error: string(bytesOf(v[2])), Stack: string(bytesOf(v[3])),
		})
		return nil
	}, int64(j.Seq))
}
