package workflow

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
)

// StepTx is a [Step] whose writes to the app's own data are committed together with the end of the
// step: they happen exactly once. Tx is the transaction type of the store: *bbolt.Tx for package
// bolt. A store of another type blocks the run. The rules for the function of the store's Update
// apply to fn: it must be short, and must not call anything else of the store. Use [In] to enqueue
// jobs in the transaction. A failed attempt leaves nothing behind.
//
// StepTx needs its own commit, and other writers wait for it.
func StepTx[Tx, T any](r *Run, name string, fn func(tx Tx) (T, error), opts ...StepOption) (T, error) {
	var out T
	decode := r.decodeInto(&out)
	err := r.s.step(KindStepTx, name, opts, decode, func(ctx context.Context, c *call, info StepInfo) ([]byte, error) {
		return nil, inTransaction(ctx, c, info, decode, fn)
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return out, nil
}

// In returns an enqueuer for the transaction of a [StepTx], for use as kind.Enqueue(ctx,
// workflow.In(r, tx), args).
func In[Tx any](r *Run, tx Tx) pawl.Enqueuer {
	q, err := transactor[Tx](r.x.engine)
	if err != nil {
		return refusing{err}
	}
	return q.In(tx)
}

// refusing is an Enqueuer that always fails.
type refusing struct{ error }

// Enqueue implements [pawl.Enqueuer].
func (r refusing) Enqueue(context.Context, ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	return nil, r.error
}

// errWrongTx blocks a run whose code was written for another store.
var errWrongTx = errors.New("the code needs another store")

// inTransaction runs an attempt and writes the end of its entry in one transaction. It returns
// errSaved when that is durable.
func inTransaction[Tx, T any](ctx context.Context, c *call, info StepInfo, decode func([]byte) error, fn func(Tx) (T, error)) error {
	x := c.x
	q, err := transactor[Tx](x.engine)
	if err != nil {
		return x.stop(fmt.Errorf("%w: %w", errWrongTx, err))
	}
	var refused error // the error of fn, and so a failed attempt
	ended := *c.e
	err = q.Update(ctx, func(tx Tx) error {
		result, err := x.invoke(ctx, info, func(context.Context, StepInfo) (any, error) {
			return fn(tx)
		})
		if err == nil {
			if err = c.fits(result, decode); err != nil {
				err = pawl.Permanent(err)
			}
		}
		if err != nil {
			refused = err
			return err
		}
		ended.Attempts++
		ended.finish(result, x.engine.now())
		x.mu.Lock()
		cp := &checkpoint{x.lease, x.take(&ended)}
		x.mu.Unlock()
		return q.MutateTx(tx, cp)
	})
	switch {
	case refused != nil:
		return refused
	case errors.Is(err, pawl.ErrNotAccepted):
		return err // the context has ended, and nothing has begun
	case err != nil:
		return x.stop(err)
	}
	c.become(&ended)
	return errSaved
}
