package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Update runs fn in a new transaction, for an app that keeps its data in the database of the queue.
// When fn returns nil, Update commits. When fn returns an error or panics, Update rolls the
// transaction back. Fn uses tx for its own statements, [Queue.EnqueueTx], [Queue.AckTx], and
// [Queue.MutateTx]. It must not commit or roll back tx.
//
// Other calls of the queue do not wait for fn, except those that change the same jobs, unique keys
// or rows.
//
// Update ignores the end of ctx once fn has begun. Fn runs once.
//
// Update returns the error of fn unchanged; [pawl.ErrNotAccepted] if ctx ended before fn began;
// [pawl.ErrClosed]; [pawl.ErrUnknownOutcome] if the connection broke during the commit; or another
// error of the server, after which nothing is stored. If two transactions wait for each other, the
// server ends one of them with an error.
func (q *Queue) Update(ctx context.Context, fn func(tx Tx) error) error {
	switch {
	case ctx.Err() != nil:
		return driver.NotAccepted(ctx)
	case q.intake.Refuses() != nil:
		return pawl.ErrClosed
	}
	tx, err := q.pool.Begin(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return driver.NotAccepted(ctx)
	case err != nil:
		return explain(err)
	}
	u := new(update)
	q.updates.Store(Tx(tx), u)
	defer q.updates.Delete(Tx(tx))
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // unless it is committed
	}()
	if err := fn(tx); err != nil {
		return err
	}
	if err := q.commit(tx); err != nil {
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

// commit commits a transaction of Update. If the connection ended before the commit, the commit had
// no effect. Later, pgconn.SafeToRetry does not help: it is also true if the connection breaks
// before the answer.
func (q *Queue) commit(tx pgx.Tx) error {
	if tx.Conn().IsClosed() {
		return fmt.Errorf("%w: the connection broke before the commit", ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(context.Background(), q.opts.Timeout)
	defer cancel()
	err := tx.Commit(ctx)
	if err != nil && tx.Conn().IsClosed() {
		return fmt.Errorf("%w: %w", pawl.ErrUnknownOutcome, err)
	}
	return explain(err)
}

// update is what a call of Update did.
type update struct{ mutated []*txn }

// MutateTx carries out a mutation as part of the transaction of [Queue.Update]. After an error, the
// transaction is unchanged.
func (q *Queue) MutateTx(tx Tx, m driver.Mutation) error {
	found, ok := q.updates.Load(tx)
	if !ok {
		return &pawl.InvalidError{Field: "transaction", Reason: "it is not that of a running Update of this queue"}
	}
	op := newMutate(q, m, 0)
	t, err := q.within(context.Background(), tx, op)
	for errors.Is(err, errAlone) { // it now declares more, or has to run alone
		t, err = q.within(context.Background(), tx, op)
	}
	var failed *undone
	if errors.As(err, &failed) {
		return failed.cause
	}
	if err != nil {
		return err
	}
	u := found.(*update)
	u.mutated = append(u.mutated, t)
	return nil
}
