package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// The verbs of those who hold a lease.

// settle ends a lease. How changes the job, whose lease is over, and puts it in the
// list of its next state; run is an event that tells of the run so far. No settle
// leaves a crash behind.
func (q *Queue) settle(ctx context.Context, l *pawl.Lease, how func(j *job, run pawl.Event)) error {
	return q.do(ctx, func() error { return q.end(l, how) })
}

// end is the part of settle within do.
func (q *Queue) end(l *pawl.Lease, how func(j *job, run pawl.Event)) error {
	j, err := q.held(l)
	if err != nil {
		return err
	}
	q.endLease(j)
	j.Crashes = 0
	how(j, pawl.Event{Took: l.Took(), TimedOut: l.TimedOut})
	return nil
}

// held finds the job of a lease, if its token is the one that counts.
func (q *Queue) held(l *pawl.Lease) (*job, error) {
	j, ok := q.jobs[l.ID]
	if !ok || j.State != pawl.Leased || j.token != l.Token {
		return nil, fmt.Errorf("job %s: %w", l.ID, pawl.ErrLeaseLost)
	}
	return j, nil
}

// Ack implements [pawl.Queue].
func (q *Queue) Ack(ctx context.Context, leases ...*pawl.Lease) error {
	if err := pawl.CheckAck(leases); err != nil {
		return err
	}
	errs := make([]error, len(leases))
	err := q.do(ctx, func() error {
		for i, l := range leases {
			errs[i] = q.end(l, q.acked)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return pawl.AckErrors(leases, errs)
}

func (q *Queue) acked(j *job, run pawl.Event) {
	j.Attempts = pawl.NextAttempt(j.Attempts)
	q.succeed(j)
	q.complete(j)
	j.Completed = q.now // for the event of a job whose record is not kept
	run.Type = pawl.EventSucceeded
	q.tell(j, run)
}

// Nack implements [pawl.Queue].
func (q *Queue) Nack(ctx context.Context, l *pawl.Lease, delay time.Duration, cause error) error {
	return q.fail(ctx, l, cause, true, func(j *job, run pawl.Event) {
		delay = max(delay, 0)
		j.BackoffSince = q.now
		q.schedule(j, delay)
		run.Type, run.Delay = pawl.EventRetried, delay
		q.tell(j, run)
	})
}

// Abandon implements [pawl.Queue].
func (q *Queue) Abandon(ctx context.Context, l *pawl.Lease, reason pawl.Reason, cause error) error {
	return q.fail(ctx, l, cause, reason.CountsAttempt(), func(j *job, run pawl.Event) { q.bury(j, reason, run) })
}

// fail settles a run that failed, or that was refused before it began. For a job that
// was cancelled it was the last one, however it is settled.
func (q *Queue) fail(ctx context.Context, l *pawl.Lease, cause error, ran bool, how func(j *job, run pawl.Event)) error {
	failure := pawl.FailureOf(cause)
	return q.settle(ctx, l, func(j *job, run pawl.Event) {
		run.Cause = failure.Error
		if ran {
			q.count(j, failure)
		} else {
			q.note(j, j.Attempt(), failure)
		}
		if j.Cancelled {
			q.bury(j, pawl.ReasonCancelled, run)
			return
		}
		how(j, run)
	})
}

// Release implements [pawl.Queue].
func (q *Queue) Release(ctx context.Context, l *pawl.Lease) error {
	return q.giveBack(ctx, l, pawl.EventReleased, func(j *job) { q.put(j, pawl.Ready) })
}

// Snooze implements [pawl.Queue].
func (q *Queue) Snooze(ctx context.Context, l *pawl.Lease, delay time.Duration) error {
	return q.giveBack(ctx, l, pawl.EventSnoozed, func(j *job) {
		if !l.Started.IsZero() { // a run, and it did not fail
			j.Attempts = 0
		}
		q.schedule(j, delay)
	})
}

// giveBack settles a job that is to run another time, unless it was cancelled.
func (q *Queue) giveBack(ctx context.Context, l *pawl.Lease, event pawl.EventType, how func(*job)) error {
	return q.settle(ctx, l, func(j *job, run pawl.Event) {
		if j.Cancelled {
			run.Cause = "it was cancelled"
			q.bury(j, pawl.ReasonCancelled, run)
			return
		}
		how(j)
		run.Type = event
		q.tell(j, run)
	})
}

// Extend implements [pawl.Queue].
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	err = q.do(ctx, func() error {
		for _, l := range leases {
			if j, err := q.held(l); err != nil {
				lost = append(lost, l)
			} else {
				q.take(j)
				q.lease(j)
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
