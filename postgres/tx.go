package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// Tx is a transaction of the app in the database of the queue: a [pgx.Tx], or a *[sql.Tx] that [SQL] wraps.
type Tx interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// EnqueueTx stores jobs as part of a transaction of the app. The jobs are in the queue if the transaction commits.
// EnqueueTx returns the results that the commit will have, as [pawl.Enqueuer] describes. No event reports the jobs.
// Waiting fetches find them with the next poll, or immediately if the app calls [Queue.Wake] after its commit.
//
// A transaction with a unique key holds the key until it ends. Other enqueues with that key wait until then, so keep
// the transaction short. If a queue has a bound on its waiting jobs, all other enqueues into the queue wait, and the
// isolation level of the transaction has to be read committed.
//
// In a queue with [pawl.Limits.Fair], a job takes its turn when a process finds it after the commit. Until then it is
// delayed.
//
// [pawl.ErrInvalid], [pawl.ErrPayloadTooLarge], [pawl.ErrBatchTooLarge], [pawl.ErrConflict], and
// [pawl.ErrQueueFull] leave the transaction unchanged. After any other error the app must roll it back.
func (q *Queue) EnqueueTx(ctx context.Context, tx Tx, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if err := driver.SupportsJobs(abilities, jobs...); err != nil {
		return nil, err
	}
	if _, err := driver.CheckBatch(jobs, q.opts.MaxPayload); err != nil {
		return nil, err
	}
	op := &enqueue{jobs: jobs}
	err := q.makeLines(ctx, jobs)
	if err == nil {
		var t *txn
		if t, err = q.within(ctx, tx, op); err == nil {
			for _, fn := range t.results {
				fn()
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("enqueue in a transaction: %w", err)
	}
	return op.done, nil
}

// In returns an enqueuer for [pawl.Kind.Enqueue] that works within a transaction of the app. See
// [Queue.EnqueueTx].
func (q *Queue) In(tx Tx) pawl.Enqueuer { return inTx{q, tx} }

type inTx struct {
	q  *Queue
	tx Tx
}

// Enqueue implements [pawl.Enqueuer].
func (in inTx) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	return in.q.EnqueueTx(ctx, in.tx, jobs...)
}

// AckTx acks a job as part of a transaction of the app, so that the job's effect and its end are
// atomic. If the transaction commits, the job has succeeded, whatever its handler returns afterwards.
// If not, the handler's return value decides. In a handler, l is job.Lease.
//
// The queue notices the commit when the lease is settled or extended, or immediately if the app calls
// [Queue.Wake] after the commit. If the handler still returns an error, the worker logs it only after Wake.
//
// [pawl.ErrLeaseLost] means that another holder has the job by now. [pawl.ErrConflict] means that the
// effect has already taken place, under the same idempotency key. In both cases roll back.
func (q *Queue) AckTx(ctx context.Context, tx Tx, l *pawl.Lease) error {
	if l == nil || l.Envelope == nil {
		return &pawl.InvalidError{Field: "lease", Reason: "there is none; a handler has it from its worker, as job.Lease"}
	}
	t, err := q.within(ctx, tx, &ackOnce{l.Ack()})
	if err != nil {
		return fmt.Errorf("ack in a transaction: %w", err)
	}
	q.acked.add(&acked{lease: l, events: t.events, totals: t.totals, xid: t.xid}, q.opts.Lease)
	return nil
}

// ackOnce is an ack that first checks whether another job completed the effect.
type ackOnce struct{ pawl.Settlement }

const sqlEffectOf = `SELECT done_until FROM pawl.effect WHERE name = $1 FOR UPDATE`

func (op *ackOnce) needs(n *needs) {
	n.ids = append(n.ids, op.Lease.ID)
	n.member(op.Lease.Envelope)
}

func (op *ackOnce) apply(t *txn) error {
	j, err := t.leased(op.Lease)
	if err != nil {
		return err
	}
	if name := core.EffectName(&j.Envelope); name != "" {
		var until int64
		err := t.tx.QueryRow(t.ctx, t.q.sql(sqlEffectOf), []byte(name)).Scan(&until)
		switch {
		case err == nil && timeOf(until).After(t.Now):
			return fmt.Errorf("job %s: %w: the effect of its idempotency key has taken place", j.ID, pawl.ErrConflict)
		case err != nil && !errors.Is(err, pgx.ErrNoRows) && !errors.Is(err, sql.ErrNoRows):
			return err
		}
	}
	return t.end(&op.Settlement, pawl.Failure{})
}

// attempts limits the tries of a call that meets races within a transaction of the app.
const attempts = 3

// within carries out an operation within a transaction of the app, behind a savepoint, so that a refusal or a race
// leaves the transaction unchanged.
func (q *Queue) within(ctx context.Context, tx Tx, op operation) (*txn, error) {
	switch {
	case tx == nil:
		return nil, &pawl.InvalidError{Field: "transaction", Reason: "there is none"}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case q.intake.Refuses() != nil:
		return nil, pawl.ErrClosed
	}
	for try := 1; ; try++ {
		t, err := q.savepoint(ctx, tx, op)
		if !isRace(err) || try == attempts {
			return t, explain(err)
		}
	}
}

// sqlBeginWithin reads the clock, and the ID of the transaction.
const sqlBeginWithin = `SELECT COALESCE($1, ` + sqlClock + `), pg_current_xact_id()::text::int8, ` + revision

// savepoint tries to carry out an operation. The transaction gets a separate scheduler, since it runs on the
// goroutine of the app. Changes to that scheduler are dropped with it.
func (q *Queue) savepoint(ctx context.Context, tx Tx, op operation) (t *txn, err error) {
	if _, err := tx.Exec(ctx, "SAVEPOINT pawl"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_, undone := tx.Exec(ctx, "ROLLBACK TO SAVEPOINT pawl")
			err = errors.Join(err, undone)
		}
		if _, released := tx.Exec(ctx, "RELEASE SAVEPOINT pawl"); err == nil {
			err = released
		}
	}()
	apart := &Queue{opts: q.opts, lines: q.lines, bounds: q.bounds}
	apart.scheduler.init()
	if q.reporter.Listened() {
		apart.reporter.OnEvent = func(pawl.Event) {} // so that the events are kept
	}
	t = newTxn(apart, ctx, tx)
	var now int64
	if err := tx.QueryRow(ctx, q.sql(sqlBeginWithin), q.clock()).Scan(&now, &t.xid, &t.revision); err != nil {
		return nil, err
	}
	t.Now = timeOf(now)
	var n needs
	op.needs(&n)
	if err := t.mutations(&n); err != nil {
		return nil, err
	}
	if err := t.read(&n); err != nil {
		return nil, err
	}
	if err := t.lockGroups(n.groups()); err != nil {
		return nil, err
	}
	if err := t.lockBounds([]*call{{operation: op}}); err != nil {
		return nil, err
	}
	if err := op.apply(t); err != nil {
		return nil, err
	}
	if t.rows != nil && !t.rows.cover.wrote && len(t.touched) == 0 {
		// A mutation that changed nothing, such as the start of a run that exists, keeps no locks.
		_, err := tx.Exec(ctx, "ROLLBACK TO SAVEPOINT pawl")
		return t, err
	}
	if err := t.flush(); err != nil {
		return nil, err
	}
	return t, t.tx.send(ctx)
}
