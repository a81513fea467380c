package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// finished is an attempt whose handler has returned, with what that means for its job.
type finished struct {
	*attempt
	with pawl.Settlement
}

// settleSoon has a finished attempt settled, together with all that finish while those
// before it are on their way. The caller holds mu.
func (s *session) settleSoon(a *attempt, with pawl.Settlement) {
	s.finished = append(s.finished, finished{a, with})
	if !s.batching {
		s.batching = true
		s.open.Go(s.settleFinished)
	}
}

// settleFinished settles until nothing is left. What the queue does not settle with the
// others is settled alone, and tried again as long as this takes.
func (s *session) settleFinished() {
	for {
		s.mu.Lock()
		n := min(len(s.finished), pawl.MaxBatchJobs)
		batch := s.finished[:n:n]
		s.finished = s.finished[n:]
		s.batching = len(batch) > 0
		s.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		settlements := make([]pawl.Settlement, len(batch))
		for i := range batch {
			settlements[i] = batch[i].with
		}
		began := time.Now()
		err := s.w.queue.Settle(s.settling, settlements...)
		s.tookToSettle(time.Since(began))
		var part *pawl.SettleError
		some := errors.As(err, &part)
		if err != nil && !some && over(err) {
			s.w.opts.Logger.Error("cannot settle jobs; they may run again", "jobs", len(batch), "error", err)
			err = nil
		}
		settled := make([]*attempt, 0, len(batch))
		for _, f := range batch {
			failure := err
			if some {
				failure = part.Failed[f.with.Lease]
			}
			if failure != nil {
				go s.settleAlone(f, failure)
			} else {
				settled = append(settled, f.attempt)
			}
		}
		clear(batch) // so that an idle worker keeps no job
		s.done(settled...)
	}
}

// settleAlone settles an attempt whose settlement failed together with others.
func (s *session) settleAlone(f finished, failure error) {
	s.settle(f.attempt, f.with, failure)
	s.done(f.attempt)
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
func (s *session) conclude(a *attempt, with pawl.Settlement) {
	s.settle(a, with, nil)
	s.forget(a)
}

// settle settles an attempt. Failure is the error of an earlier try, nil if there was none.
func (s *session) settle(a *attempt, with pawl.Settlement, failure error) {
	if !driver.Settled(a.Lease) {
		s.tookToSettle(s.w.settle(s.settling, a, with, failure))
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
// A try with an unknown outcome may have settled the job: its token is used up then, so
// the next try settles the job or finds its lease gone.
//
// A job that its handler acked in a transaction is settled already.
func (w *Worker) settle(ctx context.Context, a *attempt, with pawl.Settlement, failure error) (took time.Duration) {
	retries := pawl.DefaultStrategy()
	unknown := errors.Is(failure, pawl.ErrUnknownOutcome)
	for try := 1; ; try++ {
		began := time.Now()
		err := w.queue.Settle(ctx, with)
		took = time.Since(began)
		switch {
		case err == nil || driver.Settled(a.Lease):
			return took
		case errors.Is(err, pawl.ErrLeaseLost) && unknown:
			w.opts.Logger.Info("job counts as settled; its lease is gone after a try whose outcome was unknown",
				"id", a.ID, "kind", a.Kind, "attempt", a.Attempt())
			return took
		case errors.Is(err, pawl.ErrLeaseLost):
			w.opts.Logger.Warn("lease was lost before the job settled; it may run again",
				"id", a.ID, "kind", a.Kind, "attempt", a.Attempt())
			return took
		case over(err) || ctx.Err() != nil:
			w.opts.Logger.Error("cannot settle a job; it may run again", "id", a.ID, "kind", a.Kind, "error", err)
			return took
		}
		unknown = unknown || errors.Is(err, pawl.ErrUnknownOutcome)
		wait := retries.Before(try+1, rand.Float64())
		w.opts.Logger.Warn("cannot settle a job yet; trying again", "id", a.ID, "kind", a.Kind, "in", wait, "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// over reports whether an error of the queue means that no later call can succeed. An unknown
// outcome alone does not: the connection to a server broke, and the next call has a new one.
func over(err error) bool { return errors.Is(err, pawl.ErrClosed) || errors.Is(err, pawl.ErrPoisoned) }
