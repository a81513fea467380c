package bolt

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// settle ends a lease as a settlement requests.
type settle struct {
	finished
	outcome pawl.Outcome
	delay   time.Duration
	reason  pawl.Reason
	failure pawl.Failure
	result  []byte
	row     leaseRow
}

// finished is a lease whose attempt has ended, with what its holder knows.
type finished struct {
	holding
	job      *pawl.Envelope // for the event of a success; nil without a result and without listeners
	took     time.Duration  // duration of the attempt
	timedOut bool
	ran      bool // the attempt began
}

// settle prepares a settlement as far as possible without a transaction.
func (q *Queue) settle(s *pawl.Settlement) settle {
	l := s.Lease
	op := settle{outcome: s.Outcome, delay: s.Delay, reason: s.Reason, result: s.Result, finished: finished{
		holding: holding{l.ID, l.Token}, took: driver.Took(l), timedOut: l.TimedOut, ran: !l.Started.IsZero()}}
	switch s.Outcome {
	case pawl.OutcomeNack, pawl.OutcomeAbandon:
		op.failure = driver.FailureOf(s.Cause)
	case pawl.OutcomeAck:
		if s.Result != nil || q.scheduler.observer.Listened() {
			done := *l.Envelope
			done.Payload, done.Cursor, done.Result, done.Attempts = nil, nil, s.Result, driver.NextAttempt(done.Attempts)
			done.Crashes, done.Cancelled, done.BackoffSince = 0, false, time.Time{}
			op.job = &done
		}
	}
	return op
}

// bytes returns roughly how much the settlement writes: the failure, and the headers in the
// record. An ack writes neither, and may write a result.
func (op *settle) bytes(headers map[string]string) (n int) {
	if op.outcome == pawl.OutcomeAck {
		return len(op.result)
	}
	for key, value := range headers {
		n += len(key) + len(value)
	}
	return n + len(op.failure.Error) + len(op.failure.Stack)
}

func (op *settle) check(t *txn) (err error) {
	if op.row, err = t.held(&op.holding); err == nil {
		_, err = t.rowOfLine(op.row.line) // a damaged row refuses only this settlement
	}
	return err
}

func (op *settle) apply(t *txn) {
	t.endLease(op.id, op.row)
	if op.outcome == pawl.OutcomeAck {
		op.ack(t)
	} else {
		op.move(t)
	}
}

// settlements end several leases, each independently.
type settlements struct {
	each []settle
	errs []error // in order; nil if there is none
}

func (op *settlements) check(*txn) error { return nil }

func (op *settlements) apply(t *txn) {
	op.errs = nil
	for i := range op.each {
		one := &op.each[i]
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

// abandonDamaged ends the lease of a job that turned out to be unreadable.
type abandonDamaged struct {
	holding
	damage error
	row    leaseRow
}

func (op *abandonDamaged) check(t *txn) (err error) {
	op.row, err = t.held(&op.holding)
	return err
}

func (op *abandonDamaged) apply(t *txn) {
	t.endLease(op.id, op.row)
	t.makeDamagedDead(op.id, op.row.line, op.row.flags, op.damage)
}

// held checks that the given token is that of the job's lease.
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

// event returns an event of the job that op settles, with what is known about its attempt.
func (op *settle) event(what pawl.EventType, e *pawl.Envelope) pawl.Event {
	return pawl.Event{Type: what, Job: e, Took: op.took, TimedOut: op.timedOut}
}

func (op *settle) run() run { return run{op.failure.Error, op.took, op.timedOut} }

// ack reads the record only of a job with additional rows.
func (op *settle) ack(t *txn) {
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
		j.Attempts, j.Result = driver.NextAttempt(j.Attempts), op.result
		t.succeed(j)
	}
	if op.job == nil {
		return
	}
	op.job.Queue = t.row(op.row.line.queue).name
	op.job.Completed = t.now
	t.emitOwn(op.event(pawl.EventSucceeded, op.job))
}

// move gives the job its next place. A job with a damaged record becomes dead, whatever the
// outcome, and so does a cancelled job.
func (op *settle) move(t *txn) {
	if op.outcome == pawl.OutcomeNack && op.nackPlain(t) {
		return
	}
	j, err := t.record(op.id)
	if err != nil {
		t.makeDamagedDead(op.id, op.row.line, op.row.flags, err)
		return
	}
	j.Crashes = 0
	j.BackoffSince = time.Time{}
	switch {
	case op.outcome == pawl.OutcomeNack, op.outcome == pawl.OutcomeAbandon && driver.CountsAttempt(op.reason):
		t.failure(&j, op.failure)
	case op.outcome == pawl.OutcomeAbandon:
		t.note(&j, j.Attempt(), op.failure)
	}
	if j.Cancelled {
		run := op.run()
		if op.outcome == pawl.OutcomeRelease || op.outcome == pawl.OutcomeSnooze {
			run.cause = "it was cancelled"
		}
		t.makeDead(j, pawl.ReasonCancelled, run)
		return
	}
	switch op.outcome {
	case pawl.OutcomeNack:
		op.nack(t, j)
	case pawl.OutcomeAbandon:
		t.makeDead(j, op.reason, op.run())
	case pawl.OutcomeRelease:
		op.release(t, j)
	case pawl.OutcomeSnooze:
		op.snooze(t, j)
	}
}

func (op *settle) nack(t *txn, j stored) {
	j.NotBefore = after(t.now, op.delay)
	j.BackoffSince = t.now
	t.rewrite(&j)
	op.retried(t, j)
	t.place(j)
}

func (op *settle) retried(t *txn, j stored) {
	event := op.event(pawl.EventRetried, j.Envelope)
	event.Delay, event.Cause = max(op.delay, 0), op.failure.Error
	t.emit(event)
}

// nackPlain is move for the failure of a job whose record has nothing that matters for it. It puts
// the failure in front of the record, and needs no more of the job than the row of its lease. It
// returns false, and has done nothing, if there is no room in front of the record, or damage.
func (op *settle) nackPlain(t *txn) bool {
	if op.row.flags&(hasKey|hasMore) != 0 || op.failure.Stack != "" {
		return false
	}
	failures, record, err := cutRecent(op.id, t.jobs.Get(op.id[:]))
	if err != nil || driver.CheckRecord(record) != nil || recentSize(failures, op.failure) > maxRecent {
		return false
	}
	// A job that failed is a clean job and a retry, whatever it was before.
	e := pawl.Envelope{NotBefore: after(t.now, op.delay), Attempts: 1, Priority: op.row.priority, Seq: op.row.seq}
	op.failure.At = t.now
	size := recentHeader + recentSize(failures, op.failure) + sealWidth + len(record)
	t.put(t.jobs, op.id[:], appendRecent(t.value(size), op.id[:], failures, record, e.NotBefore, op.failure))
	if t.listening {
		if j, err := t.record(op.id); err == nil {
			op.retried(t, j)
		}
	}
	row := indexRow{op.id, op.row.flags}
	if e.NotBefore.After(t.now) {
		t.putDelayed(op.row.line, &e, row)
		return true
	}
	t.counts(op.row.line).Ready++
	t.scratch = readyKey(t.scratch[:0], op.row.line, &e)
	t.putReady(t.scratch, row)
	return true
}

func (op *settle) release(t *txn, j stored) {
	t.rewrite(&j)
	t.emit(op.event(pawl.EventReleased, j.Envelope))
	t.placeReady(j)
}

func (op *settle) snooze(t *txn, j stored) {
	if op.ran { // and did not fail
		j.Attempts = 0
	}
	j.NotBefore = after(t.now, op.delay)
	t.rewrite(&j)
	t.emit(op.event(pawl.EventSnoozed, j.Envelope))
	t.place(j)
}

// after returns now plus delay, without overflow.
func after(now time.Time, delay time.Duration) time.Time {
	return now.Add(max(delay, 0))
}
