package workflow

import (
	"context"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Tx is the transaction of a [StepTx]: the app's own buckets are open to it, and jobs that
// are enqueued by it, as kind.Enqueue(ctx, tx, args), are part of it.
type Tx struct {
	*bbolt.Tx
	queue *bolt.Queue
}

// Enqueue implements [pawl.Enqueuer].
func (tx *Tx) Enqueue(_ context.Context, jobs ...*pawl.Envelope) error {
	return tx.queue.EnqueueTx(tx.Tx, jobs...)
}

// StepTx is a [Step] whose writes, in the app's buckets of the queue's file, are committed
// together with the step's end: they happen exactly once. What is said of the function of
// [bolt.Queue.Update] holds for fn: it is short, and calls nothing else of the queue.
// An attempt that fails leaves nothing behind.
//
// It pays for a commit of its own, which others wait for.
func StepTx[T any](r *Run, name string, fn func(tx *Tx) (T, error), opts ...StepOption) (T, error) {
	var out T
	decode := decodeInto(&out)
	err := r.s.step(KindStepTx, name, opts, decode, func(ctx context.Context, c *call, info StepInfo) ([]byte, error) {
		return nil, c.inTransaction(ctx, info, decode, func(tx *Tx) (any, error) { return fn(tx) })
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return out, nil
}

// inTransaction runs an attempt and writes the end of its entry in one transaction. It
// returns errSaved when that is durable.
func (c *call) inTransaction(ctx context.Context, info StepInfo, decode func([]byte) error, fn func(*Tx) (any, error)) error {
	x := c.x
	var refused error // by fn, and so a failed attempt
	ended := *c.e
	err := x.engine.queue.Update(ctx, func(tx *bbolt.Tx) error {
		result, err := x.invoke(ctx, info, func(context.Context, StepInfo) (any, error) {
			return fn(&Tx{tx, x.engine.queue})
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
		return x.engine.queue.JoinTx(tx, cp)
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
