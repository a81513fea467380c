package bolt

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// settle ends a lease by one of the verbs.
type settle struct {
	finished
	how verb
	row leaseRow
}

// finished is a lease whose run has ended, as its holder has it.
type finished struct {
	holding
	job      *pawl.Envelope // as events have it once it is done; nil when nobody listens
	took     time.Duration  // of the run
	timedOut bool
	ran      bool // the run began
}

// verb gives a job that was leased its next place, or removes it. The lease has
// ended.
type verb func(t *txn, op *settle)

func finishedBy(l *pawl.Lease) finished {
	return finished{holding: holding{l.ID, l.Token}, took: l.Took(), timedOut: l.TimedOut, ran: !l.Started.IsZero()}
}

// doneBy is finishedBy for a run that succeeded.
func doneBy(l *pawl.Lease, listening bool) finished {
	e := finishedBy(l)
	if listening {
		done := *l.Envelope
		done.Payload, done.Attempts = nil, pawl.NextAttempt(done.Attempts)
		done.Crashes, done.Cancelled, done.BackoffSince = 0, false, time.Time{}
		e.job = &done
	}
	return e
}

func (op *settle) check(t *txn) (err error) {
	op.row, err = t.held(&op.holding)
	return err
}

func (op *settle) apply(t *txn) {
	t.endLease(op.id, op.row)
	op.how(t, op)
}

// acks ends leases whose runs succeeded, each by itself.
type acks struct {
	each []finished
	errs []error // in their order; nil when there is none
}

func newAcks(leases []*pawl.Lease, listening bool) *acks {
	op := &acks{each: make([]finished, len(leases))}
	for i, l := range leases {
		op.each[i] = doneBy(l, listening)
	}
	return op
}

func (op *acks) check(*txn) error { return nil }

func (op *acks) apply(t *txn) {
	op.errs = nil
	one := &settle{how: ack}
	for i, e := range op.each {
		one.finished = e
		err := one.check(t)
		if err == nil {
			one.apply(t)
			continue
		}
		if op.errs == nil {
			op.errs = make([]error, len(op.each))
		}
		op.errs[i] = err
	}
}

// held checks that the token given is that of the job's lease.
func (t *txn) held(h *holding) (leaseRow, error) {
	row, ok, err := t.lease(h.id[:])
	switch {
	case err != nil:
		return row, fmt.Errorf("lease of job %s: %w", h.id, err)
	case !ok || row.token != h.token:
		return row, fmt.Errorf("job %s: %w", h.id, pawl.ErrLeaseLost)
	}
	return row, nil
}

// event is what happened to the job that op settles, with what is known of its run.
func (op *settle) event(what pawl.EventType, e *pawl.Envelope) pawl.Event {
	return pawl.Event{Type: what, Job: e, Took: op.took, TimedOut: op.timedOut}
}

func (op *settle) run(cause string) run { return run{cause, op.took, op.timedOut} }

// ack reads the record only of a job that has more than that.
func ack(t *txn, op *settle) {
	var j stored
	if op.row.flags&hasMore != 0 {
		var err error
		if j, err = t.record(op.id); err != nil {
			t.damagedRow(fmt.Errorf("job is done, and its keys are not known: %w", err))
		}
	}
	if j.Envelope == nil {
		t.remove(op.id, op.row.flags)
	} else {
		t.finishEffect(j)
		j.Attempts = pawl.NextAttempt(j.Attempts)
		t.succeed(j)
	}
	if op.job == nil {
		return
	}
	op.job.Queue = t.row(op.row.line.queue).name
	op.job.Completed = t.now
	t.tellOwn(op.event(pawl.EventSucceeded, op.job))
}

// condemn is for a job that turned out to be unreadable.
func condemn(damage error) verb {
	return func(t *txn, op *settle) { t.buryDamaged(op.id, op.row.line, op.row.flags, damage) }
}

// move is a verb that needs the job's record: count counts the run, next gives the job
// its place. A job whose record is damaged goes to the dead letters whatever the verb,
// and so does one that was cancelled.
func move(cause string, count, next func(t *txn, op *settle, j stored)) verb {
	return func(t *txn, op *settle) {
		j, err := t.record(op.id)
		if err != nil {
			t.buryDamaged(op.id, op.row.line, op.row.flags, err)
			return
		}
		j.Crashes = 0
		j.BackoffSince = time.Time{}
		if count != nil {
			count(t, op, j)
		}
		if j.Cancelled {
			t.bury(j, pawl.ReasonCancelled, op.run(cause))
			return
		}
		next(t, op, j)
	}
}

func nack(delay time.Duration, f pawl.Failure) verb {
	count := func(t *txn, _ *settle, j stored) { t.failure(j, f) }
	return move(f.Error, count, func(t *txn, op *settle, j stored) {
		j.NotBefore = after(t.now, delay)
		j.BackoffSince = t.now
		t.rewrite(j)
		event := op.event(pawl.EventRetried, j.Envelope)
		event.Delay, event.Cause = max(delay, 0), f.Error
		t.tell(event)
		t.place(j)
	})
}

func abandon(reason pawl.Reason, f pawl.Failure) verb {
	count := func(t *txn, _ *settle, j stored) {
		if reason.CountsAttempt() {
			t.failure(j, f)
		} else {
			t.note(j, j.Attempt(), f)
		}
	}
	return move(f.Error, count, func(t *txn, op *settle, j stored) { t.bury(j, reason, op.run(f.Error)) })
}

func release() verb {
	return move("", nil, func(t *txn, op *settle, j stored) {
		t.rewrite(j)
		t.tell(op.event(pawl.EventReleased, j.Envelope))
		t.placeReady(j)
	})
}

func snooze(delay time.Duration) verb {
	return move("", nil, func(t *txn, op *settle, j stored) {
		if op.ran { // and did not fail
			j.Attempts = 0
		}
		j.NotBefore = after(t.now, delay)
		t.rewrite(j)
		t.tell(op.event(pawl.EventSnoozed, j.Envelope))
		t.place(j)
	})
}

// after is now plus delay, which no time.Duration lets overflow.
func after(now time.Time, delay time.Duration) time.Time {
	return now.Add(max(delay, 0))
}
