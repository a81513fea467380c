package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/gopawl/pawl"
)

// settle tells the queue how an attempt ended. It does not give up on a queue that
// cannot write just now, as on a full disk: the work is done, and forgetting it
// would mean to do it again. It gives up when the queue is gone, when the lease
// is lost, or when ctx ends. It returns how long the last call took.
//
// A job that its handler acked in a transaction is settled already.
func (w *Worker) settle(ctx context.Context, a *attempt, d decision) (took time.Duration) {
	patience := pawl.DefaultStrategy()
	for try := 1; ; try++ {
		began := time.Now()
		err := w.tell(ctx, a.told(d.timedOut), d)
		took = time.Since(began)
		switch {
		case err == nil || a.Settled():
			return took
		case errors.Is(err, pawl.ErrLeaseLost):
			w.opts.Logger.Warn("lease was lost before the job settled; it may run again",
				"id", a.ID, "kind", a.Kind, "attempt", a.Attempt())
			return took
		case over(err) || ctx.Err() != nil:
			w.opts.Logger.Error("cannot settle a job; it may run again", "id", a.ID, "kind", a.Kind, "error", err)
			return took
		}
		wait := patience.Before(try+1, rand.Float64())
		w.opts.Logger.Warn("cannot settle a job yet; trying again", "id", a.ID, "kind", a.Kind, "in", wait, "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// over reports whether an error of the queue means that no later call can succeed.
func over(err error) bool {
	return errors.Is(err, pawl.ErrClosed) || errors.Is(err, pawl.ErrPoisoned) || errors.Is(err, pawl.ErrUnknownOutcome)
}

// tell makes the one call that d stands for.
func (w *Worker) tell(ctx context.Context, l *pawl.Lease, d decision) error {
	switch d.verb {
	case ack:
		return w.queue.Ack(ctx, l)
	case nack:
		return w.queue.Nack(ctx, l, d.delay, d.cause)
	case abandon:
		return w.queue.Abandon(ctx, l, d.reason, d.cause)
	case snooze:
		return w.queue.Snooze(ctx, l, d.delay)
	case park:
		return w.queue.Park(ctx, l)
	default:
		return w.queue.Release(ctx, l)
	}
}
