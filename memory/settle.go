package memory

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The verbs of those who hold a lease.

// Settle implements [pawl.Queue].
func (q *Queue) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if err := driver.CheckSettle(settlements); err != nil {
		return err
	}
	failures := make([]pawl.Failure, len(settlements)) // read before the lock is held: an error may call the queue
	for i := range settlements {
		failures[i] = driver.FailureOf(settlements[i].Cause)
	}
	errs := make([]error, len(settlements))
	err := q.do(ctx, func() error {
		for i := range settlements {
			s := &settlements[i]
			j, err := q.held(s.Lease)
			if errs[i] = err; err == nil {
				q.end(j, s, failures[i])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return driver.SettleErrors(settlements, errs)
}

// end ends the lease of a job. No settlement leaves a crash behind, and of a job that was
// cancelled only a success counts.
func (q *Queue) end(j *job, s *pawl.Settlement, failure pawl.Failure) {
	q.endLease(j)
	j.Crashes = 0
	run := pawl.Event{Took: driver.Took(s.Lease), TimedOut: s.Lease.TimedOut}
	switch s.Outcome {
	case pawl.OutcomeAck:
		j.Attempts = driver.NextAttempt(j.Attempts)
		j.Result = bytes.Clone(s.Result)
		q.succeed(j)
		q.complete(j)
		j.Completed = q.now // for the event of a job whose record is not kept
		run.Type = pawl.EventSucceeded
		q.emit(j, run)
		return
	case pawl.OutcomeNack, pawl.OutcomeAbandon:
		run.Cause = failure.Error
		if s.Outcome == pawl.OutcomeAbandon && !driver.CountsAttempt(s.Reason) {
			q.note(j, j.Attempt(), failure)
		} else {
			q.count(j, failure)
		}
	default:
		if j.Cancelled {
			run.Cause = "it was cancelled"
		}
	}
	if j.Cancelled {
		q.makeDead(j, pawl.ReasonCancelled, run)
		return
	}
	switch s.Outcome {
	case pawl.OutcomeNack:
		run.Type, run.Delay = pawl.EventRetried, max(s.Delay, 0)
		j.BackoffSince = q.now
		q.schedule(j, s.Delay)
	case pawl.OutcomeAbandon:
		q.makeDead(j, s.Reason, run)
		return
	case pawl.OutcomeRelease:
		run.Type = pawl.EventReleased
		q.put(j, pawl.Ready)
	case pawl.OutcomeSnooze:
		run.Type = pawl.EventSnoozed
		if !s.Lease.Started.IsZero() { // a run, and it did not fail
			j.Attempts = 0
		}
		q.schedule(j, s.Delay)
	}
	q.emit(j, run)
}

// held finds the job of a lease, if its token is the one that counts.
func (q *Queue) held(l *pawl.Lease) (*job, error) {
	j, ok := q.jobs[l.ID]
	if !ok || j.State != pawl.Leased || j.token != l.Token {
		return nil, fmt.Errorf("job %s: %w", l.ID, pawl.ErrLeaseLost)
	}
	return j, nil
}

// Extend implements [pawl.Queue].
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	err = q.do(ctx, func() error {
		for _, l := range leases {
			if j, err := q.held(l); err != nil {
				lost = append(lost, l)
			} else {
				q.extend(j)
			}
		}
		return nil
	})
	return lost, err
}

// Reap implements [pawl.Queue].
func (q *Queue) Reap(ctx context.Context) (reaped int, err error) {
	err = q.do(ctx, func() error {
		reaped = q.reap()
		return nil
	})
	return reaped, err
}
