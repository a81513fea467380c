package worker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// finished is an attempt whose handler has returned, or does not run, with the settlement of its
// job.
type finished struct {
	*attempt
	with    pawl.Settlement
	unknown bool // a try may have settled it
}

// settlementsOf returns the settlements of attempts.
func settlementsOf(batch []finished) []pawl.Settlement {
	settlements := make([]pawl.Settlement, len(batch))
	for i := range batch {
		settlements[i] = batch[i].with
	}
	return settlements
}

// pile has attempts whose handlers have returned, and at the same index the settlement of each.
type pile struct {
	attempts    []*attempt
	settlements []pawl.Settlement
}

// emptied returns an empty pile that reuses the memory of p, which refers to no job after that.
func (p pile) emptied() pile {
	clear(p.attempts)
	clear(p.settlements)
	return pile{p.attempts[:0], p.settlements[:0]}
}

// settleSoon starts to settle a finished attempt, together with all attempts that finish while an
// earlier call settles others. The caller holds mu.
func (s *session) settleSoon(a *attempt, with pawl.Settlement) {
	s.finished.attempts = append(s.finished.attempts, a)
	s.finished.settlements = append(s.finished.settlements, with)
	if !s.batching {
		s.batching = true
		s.open.Go(s.settleFinished)
	}
}

// settleFinished settles until nothing is left. Two piles take turns, so a busy worker allocates
// nothing for each job.
func (s *session) settleFinished() {
	for {
		s.mu.Lock()
		batch := s.finished
		s.batching = len(batch.attempts) > 0
		if s.batching {
			s.finished, s.spare = s.spare, pile{}
		}
		s.mu.Unlock()
		if len(batch.attempts) == 0 {
			return
		}
		reusable := cap(batch.attempts) <= maxUnsettled
		for from := 0; from < len(batch.attempts); from += pawl.MaxBatchJobs {
			to := min(from+pawl.MaxBatchJobs, len(batch.attempts))
			if !s.settleBatch(batch.attempts[from:to:to], batch.settlements[from:to:to]) {
				reusable = false
			}
		}
		if reusable {
			s.mu.Lock()
			s.spare = batch.emptied()
			s.mu.Unlock()
		}
	}
}

// settleBatch settles attempts in one call. If the queue does not settle an attempt in that
// call, settleBatch settles it alone, and repeats that until it succeeds. It returns false if
// the call failed: the queue may still read the settlements of an interrupted call.
func (s *session) settleBatch(attempts []*attempt, settlements []pawl.Settlement) bool {
	began := time.Now()
	failed := s.w.queue.Settle(s.settling, settlements...)
	s.tookToSettle(time.Since(began))
	var part *pawl.SettleError
	err, some := failed, errors.As(failed, &part)
	if err != nil && !some && over(err) {
		s.w.opts.Logger.Error("cannot settle jobs; they may run again", "jobs", len(attempts), "error", err)
		err = nil
	}
	settled := attempts[:0]
	for i, a := range attempts {
		failure := err
		if some {
			failure = part.Failed[settlements[i].Lease]
		}
		if failure != nil {
			go s.settleAlone(finished{a, settlements[i], errors.Is(failure, pawl.ErrUnknownOutcome)})
		} else {
			settled = append(settled, a)
		}
	}
	s.done(settled...)
	return failed == nil
}

// settleAlone settles an attempt whose settlement failed together with others.
func (s *session) settleAlone(f finished) {
	s.settle(f)
	s.done(f.attempt)
}

// done forgets attempts whose handlers had returned. It must be the last step, because the end of
// the session may wait for it.
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

// conclude settles a claimed attempt whose handler has not returned, or never ran, and forgets it.
// It does not settle a job that its handler has acked.
func (s *session) conclude(a *attempt, with pawl.Settlement) {
	s.settle(finished{attempt: a, with: with})
	s.forget(a)
}

// release gives back attempts that have not started, in one call.
func (s *session) release(attempts []*attempt) {
	attempts = slices.DeleteFunc(attempts, func(a *attempt) bool { return !a.claim() })
	for some := range slices.Chunk(attempts, pawl.MaxBatchJobs) {
		batch := make([]finished, len(some))
		for i, a := range some {
			batch[i] = finished{attempt: a, with: a.Release()}
		}
		go func() {
			s.settle(batch...)
			s.forget(some...)
		}()
	}
}

func (s *session) tookToSettle(d time.Duration) {
	s.mu.Lock()
	s.pace.settled(d)
	s.mu.Unlock()
}

// settle settles attempts in one call, and repeats the call for the attempts that failed. It does
// not give up on a queue that cannot write at the moment, for example because the disk is full: the
// work is done, and would otherwise be repeated. It gives up if no later call can succeed, if a
// lease is lost, or if the session may no longer settle.
//
// A try with an unknown outcome may have settled a job. If it did, the token of the lease is no
// longer valid, so the next try settles the job or finds its lease lost.
//
// A job that its handler acked in a transaction is settled already.
func (s *session) settle(batch ...finished) {
	retries := pawl.DefaultStrategy()
	for try := 1; ; try++ {
		batch = slices.DeleteFunc(batch, func(f finished) bool { return driver.Settled(f.Lease) })
		if len(batch) == 0 {
			return
		}
		began := time.Now()
		err := s.w.queue.Settle(s.settling, settlementsOf(batch)...)
		took := time.Since(began)
		if batch = s.unsettledOf(batch, err); len(batch) == 0 {
			s.tookToSettle(took)
			return
		}
		what, they, about := "a job", "it", []any{"id", batch[0].ID, "kind", batch[0].Kind}
		if len(batch) > 1 {
			what, they, about = "jobs", "they", []any{"jobs", len(batch)}
		}
		if over(err) || s.settling.Err() != nil {
			s.w.opts.Logger.Error("cannot settle "+what+"; "+they+" may run again", append(about, "error", err)...)
			return
		}
		wait := retries.Before(try+1, rand.Float64())
		s.w.opts.Logger.Warn("cannot settle "+what+" yet; trying again", append(about, "in", wait, "error", err)...)
		select {
		case <-time.After(wait):
		case <-s.settling.Done():
		}
	}
}

// unsettledOf returns the attempts to settle again after a Settle returned err.
func (s *session) unsettledOf(batch []finished, err error) (left []finished) {
	var part *pawl.SettleError
	some := errors.As(err, &part)
	for _, f := range batch {
		failure := err
		if some {
			failure = part.Failed[f.Lease]
		}
		switch {
		case failure == nil || driver.Settled(f.Lease):
		case errors.Is(failure, pawl.ErrLeaseLost):
			s.logLost(f)
		case f.with.Outcome == pawl.OutcomeThrottle && errors.Is(failure, pawl.ErrInvalid): // no later try can succeed
			f.with = s.decide(f.attempt, fmt.Errorf("throttle: %w", failure), nil)
			left = append(left, f)
		default:
			f.unknown = f.unknown || errors.Is(failure, pawl.ErrUnknownOutcome)
			left = append(left, f)
		}
	}
	return left
}

// logLost logs that a settlement found its lease lost. If the lease cannot have expired yet, an
// earlier try with an unknown outcome settled the job.
func (s *session) logLost(f finished) {
	s.mu.Lock()
	holds := f.until.After(time.Now())
	s.mu.Unlock()
	log, message := s.w.opts.Logger.Warn, "lease was lost before the job settled; it may run again"
	switch {
	case f.unknown && holds:
		log, message = s.w.opts.Logger.Info, "job counts as settled; its lease is gone after a try whose outcome was unknown"
	case f.unknown:
		message = "lease is gone after a try whose outcome was unknown; the job is settled, or it may run again"
	}
	log(message, "id", f.ID, "kind", f.Kind, "attempt", f.Attempt())
}

// over reports whether an error of the queue means that no later call can succeed. An unknown
// outcome alone does not mean that: the connection to a server broke, and the next call opens
// another.
func over(err error) bool { return errors.Is(err, pawl.ErrClosed) || errors.Is(err, pawl.ErrPoisoned) }
