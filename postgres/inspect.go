package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// agenda says when something falls due, for callers that inspect the queue without the scheduler.
type agenda struct {
	due    time.Time // by the wall clock
	expiry time.Time // expiry of the first lease, on monotonic time; zero without leases
	skew   time.Duration
}

// publish stores the agenda of the scheduler.
func (q *Queue) publish() {
	a := &agenda{due: q.due, skew: q.skew}
	for _, h := range q.held {
		if a.expiry.IsZero() || h.expires.Before(a.expiry) {
			a.expiry = h.expires
		}
	}
	q.agenda.Store(a)
}

// tick is a call that changes nothing. Its transaction carries out what is due.
type tick struct{}

func (tick) needs(*needs)     {}
func (tick) apply(*txn) error { return nil }

// look runs fn on the current state of the queue, in a read-only transaction. Due moves have been carried out before.
func (q *Queue) look(ctx context.Context, fn func(tx *viewTx) error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case q.intake.Refuses() != nil:
		return pawl.ErrClosed
	}
	a := q.agenda.Load()
	wall := time.Now().Add(a.skew)
	if q.opts.Now != nil {
		wall = q.opts.Now()
	}
	if !a.due.After(wall) || !a.expiry.IsZero() && !a.expiry.After(time.Now()) {
		if err := q.submit(ctx, tick{}); err != nil {
			return err
		}
	}
	return q.view(ctx, fn)
}

// view is the part of look that reads. It changes nothing, so it tries again after a connection broke, for up to
// Options.Timeout. Each statement has the same limit.
func (q *Queue) view(ctx context.Context, fn func(tx *viewTx) error) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(q.opts.Timeout, cancel)
	defer timer.Stop()
	until := time.Now().Add(q.opts.Timeout)
	for try := 0; ; try++ {
		err := q.viewOnce(within, timer, fn)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case q.intake.Refuses() != nil:
			return pawl.ErrClosed
		case !isBroken(err) && within.Err() == nil:
			return explain(err)
		case time.Now().After(until):
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		select {
		case <-within.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		case <-time.After(10 * time.Millisecond << min(try, 6)):
		}
	}
}

// The statements that begin the transaction of a view, which reads a snapshot of the queue. JIT is off: misled by the
// estimates for a table that was never analyzed, the server would compile statements that take a millisecond without
// JIT.
const (
	sqlBeginView = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	sqlNoJIT     = "SET LOCAL jit = off"
)

// viewOnce runs fn on one connection.
func (q *Queue) viewOnce(ctx context.Context, timer *time.Timer, fn func(tx *viewTx) error) error {
	conn, err := q.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	tx := &viewTx{pipe: pipe{Tx: conn}, conn: conn.Conn(), ctx: ctx, begin: func() { timer.Reset(q.opts.Timeout) }}
	tx.held.Queue(sqlBeginView)
	tx.held.Queue(sqlNoJIT)
	tx.then(func() { tx.began = true })
	defer tx.end(conn)
	err = fn(tx)
	if err == nil && tx.began && (tx.conn.IsClosed() || tx.conn.PgConn().TxStatus() == 'E') {
		err = errors.New("a statement of the view failed, and its reader ignored that")
	}
	return err
}

// viewTx is the transaction of a view. It begins in the round trip of its first statement, and its
// statements end with the context of the view.
type viewTx struct {
	pipe
	conn  *pgx.Conn
	ctx   context.Context
	begin func() // a statement begins
	began bool   // the transaction has begun
}

// end ends the transaction. The caller of the view does not wait for the end: it has its results, and there is nothing
// to commit.
func (v *viewTx) end(conn *pgxpool.Conn) {
	if v.conn.IsClosed() || v.conn.PgConn().TxStatus() == 'I' {
		conn.Release()
		return
	}
	go func() {
		defer conn.Release() // Release closes a connection that is still in a transaction
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_, _ = conn.Exec(ctx, "rollback")
	}()
}

// Query implements [Tx].
func (v *viewTx) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	v.begin()
	return v.pipe.Query(v.ctx, sql, args...)
}

// QueryRow implements [Tx].
func (v *viewTx) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	v.begin()
	return v.pipe.QueryRow(v.ctx, sql, args...)
}

// SendBatch implements [Tx].
func (v *viewTx) SendBatch(_ context.Context, b *pgx.Batch) pgx.BatchResults {
	v.begin()
	return v.pipe.SendBatch(v.ctx, b)
}

// Job returns a job with its state, payload, and history. It returns [pawl.ErrNotFound] if the job is not in the queue,
// because it never was or because it is done.
func (q *Queue) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	found, err := q.lookSound(ctx, func(tx *viewTx) ([]pawl.Listed, error) {
		return q.read(ctx, tx, []pawl.ID{id}, driver.AllParts)
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
func (q *Queue) lookSound(ctx context.Context, fn func(tx *viewTx) ([]pawl.Listed, error)) (found []pawl.Listed, err error) {
	look := func() error {
		return q.look(ctx, func(tx *viewTx) (err error) {
			found, err = fn(tx)
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

const (
	// sqlJob reads jobs, with their payloads if $2.
	sqlJob = `SELECT ` + columns + `, CASE WHEN $2 THEN j.payload ELSE '' END FROM pawl.job j WHERE j.id = ANY($1)`

	sqlHistory     = `SELECT id, attempt, at, error, stack FROM pawl.history WHERE id = ANY($1) ORDER BY id, n`
	sqlLastFailure = `SELECT DISTINCT ON (id) id, attempt, at, error, stack FROM pawl.history WHERE id = ANY($1) ORDER BY id, n DESC`
)

// read reads parts of the jobs that exist, in the order of ids. An unreadable job has an error.
func (q *Queue) read(ctx context.Context, tx Tx, ids []pawl.ID, parts driver.Parts) ([]pawl.Listed, error) {
	rows, err := tx.Query(ctx, q.sql(sqlJob), uuids(ids), parts&driver.PartPayload != 0)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	byID := make(map[pawl.ID]pawl.Listed)
	var failed []*pawl.Envelope
	var waiting []*job
	for rows.Next() {
		var row jobRow
		if err := rows.Scan(append(row.fields(), &row.payload)...); err != nil {
			return nil, err
		}
		id := pawl.ID(row.id.Bytes)
		j, err := row.job()
		switch {
		case errors.Is(err, pawl.ErrCorrupt):
			byID[id] = pawl.Listed{Job: &pawl.Envelope{ID: id}, Err: err}
			continue
		case err != nil:
			return nil, err
		}
		byID[id] = pawl.Listed{Job: &j.Envelope}
		if j.Failures > 0 {
			failed = append(failed, &j.Envelope)
		}
		if j.waits {
			waiting = append(waiting, j)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if err := q.readPrerequisites(ctx, tx, waiting); err != nil {
		return nil, err
	}
	found := make([]pawl.Listed, 0, len(byID))
	for _, id := range ids {
		if listed, ok := byID[id]; ok {
			found = append(found, listed)
		}
	}
	return found, q.readHistories(ctx, tx, failed, parts)
}

// readHistories fills in the histories of jobs, or their last entries.
func (q *Queue) readHistories(ctx context.Context, tx Tx, jobs []*pawl.Envelope, parts driver.Parts) error {
	statement := sqlHistory
	switch {
	case len(jobs) == 0 || parts&(driver.PartHistory|driver.PartLastFailure) == 0:
		return nil
	case parts&driver.PartHistory == 0:
		statement = sqlLastFailure
	}
	byID := make(map[pawl.ID]*pawl.Envelope, len(jobs))
	ids := make([]pawl.ID, len(jobs))
	for i, e := range jobs {
		e.History, byID[e.ID], ids[i] = nil, e, e.ID
	}
	rows, err := tx.Query(ctx, q.sql(statement), uuids(ids))
	if err != nil {
		return err
	}
	var id pgtype.UUID
	var attempt int
	var at int64
	var text, stack []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &attempt, &at, &text, &stack}, func() error {
		e := byID[id.Bytes]
		e.History = append(e.History, pawl.Failure{Attempt: attempt, At: timeOf(at), Error: string(text), Stack: string(stack)})
		return nil
	})
	return err
}

// readBodies fills in the payloads and histories of jobs, for a condition that reads them.
func (q *Queue) readBodies(ctx context.Context, tx Tx, jobs []*pawl.Envelope) error {
	if len(jobs) == 0 {
		return nil
	}
	byID := make(map[pawl.ID]*pawl.Envelope, len(jobs))
	ids := make([]pawl.ID, len(jobs))
	for i, e := range jobs {
		byID[e.ID], ids[i] = e, e.ID
	}
	stored, err := q.read(ctx, tx, ids, driver.AllParts)
	if err != nil {
		return err
	}
	for _, listed := range stored {
		e := byID[listed.Job.ID]
		e.Payload, e.History = listed.Job.Payload, listed.Job.History
	}
	return nil
}
