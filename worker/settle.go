package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// ack has a job acked whose handler succeeded: together with all that finish while those
// before them are on their way. The caller holds mu.
func (s *session) ack(a *attempt) {
	s.finished = append(s.finished, a)
	if !s.acking {
		s.acking = true
		s.open.Go(s.ackFinished)
	}
}

// ackFinished acks until nothing is left. What the queue does not ack with the others is
// settled alone, with the patience that this takes.
func (s *session) ackFinished() {
	for {
		s.mu.Lock()
		n := min(len(s.finished), pawl.MaxBatchJobs)
		batch := s.finished[:n:n]
		s.finished = s.finished[n:]
		s.acking = len(batch) > 0
		s.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		leases := make([]*pawl.Lease, len(batch))
		for i, a := range batch {
			leases[i] = a.Lease
		}
		began := time.Now()
		err := s.w.queue.Ack(s.settling, leases...)
		s.tookToSettle(time.Since(began))
		switch {
		case err == nil:
		case over(err):
			s.w.opts.Logger.Error("cannot ack jobs; they may run again", "jobs", len(batch), "error", err)
		default:
			var part *pawl.AckError
			whole := !errors.As(err, &part)
			batch = slices.DeleteFunc(batch, func(a *attempt) bool {
				alone := whole || part.Failed[a.Lease] != nil
				if alone {
					go s.finish(a, nil)
				}
				return alone
			})
		}
		s.done(batch...)
	}
}

// done forgets attempts whose handlers had returned. Nothing follows it, which may be
// what the session's end waits for.
func (s *session) done(attempts ...*attempt) {
	s.mu.Lock()
	s.unsettled -= len(attempts)
	s.startWaiting()
	s.askAgain()
	s.mu.Unlock()
	s.forget(attempts...)
}

func (s *session) forget(attempts ...*attempt) {
	s.mu.Lock()
	for _, a := range attempts {
		delete(s.held, a)
	}
	s.mu.Unlock()
	s.open.Add(-len(attempts))
}

// conclude settles a claimed attempt whose handler has not returned, or never ran, unless
// that handler did it; and forgets it.
func (s *session) conclude(a *attempt, d decision) {
	s.settle(a, d)
	s.forget(a)
}

func (s *session) settle(a *attempt, d decision) {
	if !a.Settled() {
		s.tookToSettle(s.w.settle(s.settling, a, d))
	}
}

func (s *session) tookToSettle(d time.Duration) {
	s.mu.Lock()
	s.pace.settled(d)
	s.mu.Unlock()
}

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
	default:
		return w.queue.Release(ctx, l)
	}
}
