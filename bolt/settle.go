package bolt

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// settle ends a lease as a settlement requests. Thousands of settles may wait for a commit, so the
// type is small: it reads the rest from the settlement, which the caller keeps until the commit.
type settle struct {
	finished
	given        *pawl.Settlement
	cause, stack string // of a nack or an abandon

	done bool  // the job is done, and its record can go
	rows flags // of the job, if it is done
}

// finished is a lease whose attempt has ended, with what its holder knows.
type finished struct {
	holding
	job      *pawl.Envelope // for the event of a success; nil without a result and without listeners
	took     time.Duration  // duration of the attempt
	timedOut bool
	ran      bool // the attempt began
}

// settle does the part of a settlement that needs no transaction.
func (q *Queue) settle(s *pawl.Settlement) settle {
	l := s.Lease
	op := settle{given: s, finished: finished{
		holding: holding{l.ID, l.Token}, took: driver.Took(l), timedOut: l.TimedOut, ran: !l.Started.IsZero()}}
	switch s.Outcome {
	case pawl.OutcomeNack, pawl.OutcomeAbandon:
		f := driver.FailureOf(s.Cause)
		op.cause, op.stack = f.Error, f.Stack
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
	if op.given.Outcome == pawl.OutcomeAck {
		return len(op.given.Result)
	}
	for key, value := range headers {
		n += len(key) + len(value)
	}
	return n + len(op.cause) + len(op.stack)
}

// lease returns the row of the lease, or the reason why the settlement is refused.
func (op *settle) lease(t *txn) (row leaseRow, err error) {
	op.done = false // an earlier run of the operation may have set it
	if row, err = t.held(&op.holding); err == nil {
		_, err = t.rowOfLine(row.line) // a damaged row refuses only this settlement
	}
	if err == nil && op.given.Outcome == pawl.OutcomeThrottle {
		err = op.checkRest(t, row)
	}
	return row, err
}

// end ends the lease of a row that lease returned.
func (op *settle) end(t *txn, row leaseRow) {
	if op.given.Outcome == pawl.OutcomeAck {
		op.ack(t, row, t.endLease(op.id, row))
		return
	}
	if op.given.Outcome == pawl.OutcomeThrottle {
		op.beginRest(t, row)
	}
	leads := t.leads(op.id, row)
	t.endLease(op.id, row)
	op.move(t, row, leads)
}

// settleOne is a settlement that is an operation of its own.
type settleOne struct {
	settle
	row leaseRow
}

func (op *settleOne) check(t *txn) (err error) {
	op.row, err = op.lease(t)
	return err
}

func (op *settleOne) apply(t *txn) {
	op.end(t, op.row)
	op.forget(t)
}

// settlements end several leases, each independently. They remove the jobs that are done from the last
// to the first, as [txn.grantJobs] does.
type settlements struct {
	each []settle
	errs []error // in order; nil if there is none
}

func (op *settlements) check(*txn) error { return nil }

func (op *settlements) apply(t *txn) {
	op.errs = nil
	for i := range op.each {
		one := &op.each[i]
		row, err := one.lease(t)
		if err == nil {
			one.end(t, row)
			continue
		}
		if op.errs == nil {
			op.errs = make([]error, len(op.each))
		}
		op.errs[i] = err
	}
	for i := range slices.Backward(op.each) {
		op.each[i].forget(t)
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
	if j := t.endLease(op.id, op.row); j.Envelope != nil {
		t.leaveKey(j, false)
	}
	t.leaseDamaged(op.id, op.row, op.damage)
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

func (op *settle) run() run { return run{op.cause, op.took, op.timedOut} }

// failure returns the entry of the attempt in the history, without its number and time.
func (op *settle) failure() pawl.Failure { return pawl.Failure{Error: op.cause, Stack: op.stack} }

// ack ends a job that succeeded. The end of the lease has read its record if it has additional rows.
func (op *settle) ack(t *txn, row leaseRow, j stored) {
	if j.Envelope == nil {
		if row.flags&hasMore != 0 || row.flags&hasKey != 0 && row.key == "" {
			t.damagedRow(fmt.Errorf("job %s is done, and its keys are not known: %w", op.id, pawl.ErrCorrupt))
		}
		t.passKey(row.line.queue, row.key, op.id)
		op.done, op.rows = true, row.flags
		t.hasEnded(op.id, pawl.Completed)
	} else {
		t.finishEffect(j)
		j.Attempts, j.Result = driver.NextAttempt(j.Attempts), op.given.Result
		t.succeed(j)
	}
	t.countIn(row.line.queue, pawl.EventSucceeded)
	if op.job == nil {
		return
	}
	op.job.Queue = t.row(row.line.queue).name
	op.job.Completed = t.now
	t.emitOwn(op.event(pawl.EventSucceeded, op.job))
}

// forget removes all rows of a job that is done.
func (op *settle) forget(t *txn) {
	if op.done {
		t.remove(op.id, op.rows)
	}
}

// move gives the job its next place. A job with a damaged record becomes dead, whatever the outcome,
// and so does a cancelled job. Leads says that the job held its key while it was leased.
func (op *settle) move(t *txn, row leaseRow, leads bool) {
	outcome, reason := op.given.Outcome, op.given.Reason
	if outcome == pawl.OutcomeNack && op.nackPlain(t, row) {
		return
	}
	j, err := t.record(op.id)
	if err != nil {
		t.leaseDamaged(op.id, row, err)
		return
	}
	j.HoldsKey = j.HoldsKey || leads
	j.Crashes = 0
	j.BackoffSince = time.Time{}
	switch {
	case outcome == pawl.OutcomeNack, outcome == pawl.OutcomeAbandon && driver.CountsAttempt(reason):
		t.failure(&j, op.failure())
	case outcome == pawl.OutcomeAbandon:
		t.note(&j, j.Attempt(), op.failure())
	}
	if j.Cancelled {
		run := op.run()
		if outcome == pawl.OutcomeRelease || outcome == pawl.OutcomeSnooze || outcome == pawl.OutcomeThrottle {
			run.cause = "it was cancelled"
		}
		t.makeDead(j, pawl.ReasonCancelled, run)
		return
	}
	switch outcome {
	case pawl.OutcomeNack:
		op.nack(t, j)
	case pawl.OutcomeAbandon:
		t.makeDead(j, reason, op.run())
	case pawl.OutcomeRelease:
		op.release(t, j)
	case pawl.OutcomeSnooze:
		op.snooze(t, j)
	case pawl.OutcomeThrottle:
		op.throttle(t, j)
	}
}

func (op *settle) nack(t *txn, j stored) {
	j.NotBefore, j.FairTag = after(t.now, op.given.Delay), 0
	j.BackoffSince = t.now
	t.rewrite(&j)
	op.retried(t, j)
	t.place(j)
}

func (op *settle) retried(t *txn, j stored) {
	event := op.event(pawl.EventRetried, j.Envelope)
	event.Delay, event.Cause = max(op.given.Delay, 0), op.cause
	t.emit(event)
}

// nackPlain is move for a failed job whose record does not matter for the next state. It puts the
// failure in front of the record. The next state follows from the row of the lease alone. If
// there is damage, or no room in front of the record, it does nothing and returns false.
func (op *settle) nackPlain(t *txn, row leaseRow) bool {
	if row.flags&(hasKey|hasMore|hasTag) != 0 || op.stack != "" {
		return false
	}
	failures, record, err := cutRecent(op.id, t.jobs.Get(op.id[:]))
	if err != nil || driver.CheckRecord(record) != nil || recentSize(failures, op.cause) > maxRecent {
		return false
	}
	// A job that failed is a clean job and a retry, whatever it was before.
	e := pawl.Envelope{NotBefore: after(t.now, op.given.Delay), Attempts: 1, Priority: row.priority, Seq: row.seq}
	size := recentHeader + recentSize(failures, op.cause) + sealWidth + len(record)
	t.put(t.jobs, op.id[:], appendRecent(t.value(size), op.id[:], failures, record, e.NotBefore, t.now, op.cause))
	if !t.listening {
		t.countIn(row.line.queue, pawl.EventRetried)
	} else if j, err := t.record(op.id); err == nil {
		op.retried(t, j)
	}
	index := indexRow{op.id, row.flags}
	if e.NotBefore.After(t.now) {
		t.putDelayed(row.line, &e, index)
		return true
	}
	t.counts(row.line).Ready++
	t.scratch = readyKey(t.scratch[:0], row.line, &e)
	t.putReady(t.scratch, index)
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
	j.NotBefore, j.FairTag = after(t.now, op.given.Delay), 0
	t.rewrite(&j)
	t.emit(op.event(pawl.EventSnoozed, j.Envelope))
	t.place(j)
}

// after returns now plus delay, without overflow.
func after(now time.Time, delay time.Duration) time.Time {
	return now.Add(max(delay, 0))
}
