package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// EnqueueTx stores jobs as part of a transaction of the app in the file of the queue. The jobs are in
// the queue if the transaction commits. EnqueueTx returns the results that the commit will have, as
// [pawl.Enqueuer] describes. No event reports the jobs. Waiting fetches find them with the next poll,
// or immediately if the app calls [Queue.Wake] after its commit.
//
// Open the app's database with the driver of the queue, which modernc.org/sqlite registers as "sqlite".
// EnqueueTx refuses a transaction of another SQLite library with [pawl.ErrInvalid]: two libraries in one
// process break each other's locks of the file, and damage it.
//
// From the first write of the transaction to its commit, neither the queue nor another connection can write to the
// file. Keep the transaction short. Within it, call no other method of the queue that writes: the call would wait for
// the transaction. Begin the transaction with BEGIN IMMEDIATE (_txlock=immediate). Otherwise SQLite refuses its first
// write if another connection has committed since its first read.
//
// [pawl.ErrInvalid], [pawl.ErrPayloadTooLarge], [pawl.ErrBatchTooLarge], and [pawl.ErrConflict] leave
// the transaction unchanged. After any other error the app must roll it back.
func (q *Queue) EnqueueTx(ctx context.Context, tx *sql.Tx, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
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
	t, err := q.within(ctx, tx, op)
	if err != nil {
		return nil, fmt.Errorf("enqueue in a transaction: %w", err)
	}
	for _, fn := range t.results {
		fn()
	}
	return op.done, nil
}

// In returns an enqueuer for [pawl.Kind.Enqueue] that works within a transaction of the app. See
// [Queue.EnqueueTx].
func (q *Queue) In(tx *sql.Tx) pawl.Enqueuer { return inTx{q, tx} }

type inTx struct {
	q  *Queue
	tx *sql.Tx
}

// Enqueue implements [pawl.Enqueuer].
func (in inTx) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	return in.q.EnqueueTx(ctx, in.tx, jobs...)
}

// AckTx acks a job as part of a transaction of the app, so that the job's effect and its end are
// atomic. If the transaction commits, the job has succeeded, whatever its handler returns afterwards.
// If not, the handler's return value decides. In a handler, l is job.Lease. The transaction has to
// follow the rules of [Queue.EnqueueTx].
//
// The queue notices the commit with its next write or poll, or immediately if the app calls [Queue.Wake]. If the
// handler still returns an error, the worker logs it only after Wake.
//
// [pawl.ErrLeaseLost] means that the job has another holder by now. [pawl.ErrConflict] means that the
// effect has already happened under the same idempotency key. In both cases, roll back.
func (q *Queue) AckTx(ctx context.Context, tx *sql.Tx, l *pawl.Lease) error {
	if l == nil || l.Envelope == nil {
		return &pawl.InvalidError{Field: "lease", Reason: "there is none; a handler has it from its worker, as job.Lease"}
	}
	op := &ackOnce{Settlement: l.Ack()}
	t, err := q.within(ctx, tx, op)
	if err != nil {
		return fmt.Errorf("ack in a transaction: %w", err)
	}
	q.acked.add(&acked{lease: l, seq: op.seq, events: t.events, totals: t.totals})
	return nil
}

// ackOnce is an ack that first checks whether another job completed the effect.
type ackOnce struct {
	pawl.Settlement
	seq int64
}

func (op *ackOnce) apply(t *txn) error {
	j, err := t.leased(op.Lease)
	if err != nil {
		return err
	}
	op.seq = int64(j.Seq)
	if name := core.EffectName(&j.Envelope); name != "" {
		until := int64(0)
		t.query(`SELECT done_until FROM pawl_effect WHERE name = ?`, one(&until), []byte(name))
		if until > nanos(t.Now) {
			return fmt.Errorf("job %s: %w: the effect of its idempotency key has taken place", j.ID, pawl.ErrConflict)
		}
	}
	return t.end(&op.Settlement, pawl.Failure{})
}

// within carries out an operation within a transaction of the app, behind a savepoint, so that a
// refusal leaves the transaction unchanged. The operation gets a separate scheduler, since it runs on
// the goroutine of the app. Changes to that scheduler are dropped with it.
func (q *Queue) within(ctx context.Context, tx *sql.Tx, op operation) (t *txn, err error) {
	switch refused := q.intake.Refuses(); {
	case tx == nil:
		return nil, &pawl.InvalidError{Field: "transaction", Reason: "there is none"}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case refused != nil:
		return nil, refused
	}
	c := appConn{context.WithoutCancel(ctx), tx}
	if _, own := q.updates.Load(tx); !own {
		if err := q.checkLibrary(c); err != nil {
			return nil, err
		}
	}
	apart := &Queue{opts: q.opts}
	apart.scheduler.init()
	if q.reporter.Listened() {
		apart.reporter.OnEvent = func(pawl.Event) {} // so that the events are kept
	}
	if _, err := c.exec("SAVEPOINT pawl"); err != nil {
		return nil, explain(err)
	}
	t = newTxn(apart, c)
	t.app = true
	t.exec(`UPDATE pawl_meta SET seq = seq`) // takes the write lock, so that what it reads cannot change
	if t.err == nil {
		err = op.apply(t)
	}
	if t.storeSequence(); t.err != nil {
		err = explain(t.err)
	}
	if err != nil {
		_, undone := c.exec("ROLLBACK TO SAVEPOINT pawl")
		err = errors.Join(err, undone)
	}
	if _, released := c.exec("RELEASE SAVEPOINT pawl"); err == nil {
		err = released
	}
	return t, err
}

// Update runs fn in a new transaction, for an app that keeps its data in the file of the queue. When fn returns nil,
// Update commits durably. When fn returns an error or panics, Update rolls the transaction back. Fn uses tx for its
// own statements, [Queue.EnqueueTx], [Queue.AckTx], and [Queue.MutateTx]. Fn must not commit or roll back tx, and must
// not call other methods of the queue that write: only tx can write while fn runs, so the call would wait for fn.
//
// Update ignores the end of ctx once fn has begun. Fn runs once.
//
// Update returns the error of fn unchanged; [pawl.ErrNotAccepted] if ctx ended before fn began; [pawl.ErrClosed];
// [ErrBusy]; [ErrDisk]; or another error of SQLite. After these errors nothing is stored. There are two exceptions. If
// the commit failed and SQLite did not refuse it, the error is [pawl.ErrUnknownOutcome] and [pawl.ErrPoisoned]: the
// transaction may or may not be in the file, and the queue refuses all work until it is closed and opened again. If fn
// committed or rolled back tx although it must not, the error is [sql.ErrTxDone].
func (q *Queue) Update(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if ctx.Err() != nil {
		return driver.NotAccepted(ctx)
	}
	if err := q.intake.Refuses(); err != nil {
		return err
	}
	select {
	case q.writing <- struct{}{}:
	case <-ctx.Done():
		return driver.NotAccepted(ctx)
	case <-q.done:
		return pawl.ErrClosed
	}
	u, err := q.update(fn)
	if err != nil {
		return err
	}
	for _, t := range u.mutated {
		for _, fn := range t.after {
			fn()
		}
	}
	_ = q.Wake(context.WithoutCancel(ctx)) // otherwise the queue finds out by polling
	return nil
}

// update is what a call of Update did.
type update struct{ mutated []*txn }

// update is the part of Update that runs when it may write.
func (q *Queue) update(fn func(tx *sql.Tx) error) (*update, error) {
	defer func() { <-q.writing }()
	if err := q.intake.Poisoned(); err != nil {
		return nil, err
	}
	q.app.once.Do(func() {
		q.app.db, q.app.err = sql.Open("sqlite", address(q.file, fmt.Sprintf(
			"_txlock=immediate&_pragma=busy_timeout(%d)&_pragma=synchronous(2)", q.opts.Timeout.Milliseconds())))
	})
	if q.app.err != nil {
		return nil, q.app.err
	}
	tx, err := q.app.db.BeginTx(context.Background(), nil)
	if err != nil {
		return nil, explain(err)
	}
	u := new(update)
	q.updates.Store(tx, u)
	defer q.updates.Delete(tx)
	defer func() { _ = tx.Rollback() }() // unless it is committed
	if err := fn(tx); err != nil {
		return nil, err
	}
	switch err := tx.Commit(); {
	case err == nil:
		return u, nil
	case errors.Is(err, sql.ErrTxDone):
		return nil, fmt.Errorf("the function of Update ended the transaction; let Update do that: %w", err)
	case isRefusal(err):
		return nil, explain(err)
	default:
		return nil, q.committed(err)
	}
}
