package pawl

import (
	"context"
	"fmt"
	"time"
)

// What follows is for those who implement [Queue]: what every queue does alike when
// it takes jobs in, and lets them go.

// CheckBatch refuses what a queue whose payloads have at most maxPayload bytes can
// never accept, whatever it holds: [ErrInvalid], [ErrPayloadTooLarge],
// [ErrBatchTooLarge], and [ErrConflict] for an envelope or an ID that is twice in
// the batch. It returns the bytes of all payloads.
func CheckBatch(jobs []*Envelope, maxPayload int) (bytes int, err error) {
	for _, e := range jobs {
		if err := e.Validate(); err != nil {
			return 0, err
		}
		if len(e.Payload) > maxPayload {
			return 0, fmt.Errorf("%w: %d bytes, this queue takes %d; enqueue a reference to the data, or raise Options.MaxPayload",
				ErrPayloadTooLarge, len(e.Payload), maxPayload)
		}
		bytes += len(e.Payload)
	}
	if len(jobs) > MaxBatchJobs || len(jobs) > 1 && bytes > MaxBatchBytes {
		return 0, fmt.Errorf("%w: %d jobs of %d bytes, at most %d jobs of %d bytes fit in one commit; split it",
			ErrBatchTooLarge, len(jobs), bytes, MaxBatchJobs, MaxBatchBytes)
	}
	if len(jobs) == 1 {
		return bytes, nil
	}
	pointers, ids := make(map[*Envelope]struct{}, len(jobs)), make(map[ID]struct{})
	for _, e := range jobs {
		pointers[e] = struct{}{}
		if !e.ID.IsZero() && !e.Existing { // an ID that is to be given is no conflict
			if _, twice := ids[e.ID]; twice {
				return 0, fmt.Errorf("job %s: %w: it is twice in one batch", e.ID, ErrConflict)
			}
			ids[e.ID] = struct{}{}
		}
	}
	if len(pointers) < len(jobs) {
		return 0, fmt.Errorf("%w: an envelope is twice in one batch", ErrConflict)
	}
	return bytes, nil
}

// Accept fills in what is the queue's to fill in when it takes a job in at a time:
// what the job brings from another queue stays, what this queue counts begins anew.
// It does not give a sequence. It reports whether the job is ready at once.
func (e *Envelope) Accept(now time.Time) (ready bool) {
	now = now.Round(0) // without its monotonic part
	if e.Existing {
		e.ID = ID{} // that of another job, which an earlier enqueue told
	}
	if e.ID.IsZero() {
		e.ID = NewID(now)
	}
	if e.Queue == "" {
		e.Queue = DefaultQueue
	}
	if e.Origin == "" {
		e.Origin = e.Queue
	}
	if e.Created.IsZero() {
		e.Created = now
	}
	switch e.NotBefore = e.NotBefore.Round(0); {
	case e.Delay > 0:
		e.NotBefore = now.Add(e.Delay)
	case !e.NotBefore.After(now):
		e.NotBefore, ready = now, true
	}
	e.Deadline = e.Deadline.Round(0)
	e.Delay, e.Existing = 0, false
	e.Attempts, e.Crashes, e.Failures, e.Death, e.History = 0, 0, 0, nil, nil
	e.Cancelled, e.BackoffSince, e.Completed = false, time.Time{}, time.Time{}
	e.State, e.LeasedSince = "", time.Time{}
	return ready
}

// CheckSettle refuses what no Settle takes: [ErrBatchTooLarge] for too many settlements,
// [ErrInvalid] for one without a lease or outcome, or an abandon without a
// reason of at most [MaxNameBytes].
func CheckSettle(settlements []Settlement) error {
	if len(settlements) > MaxBatchJobs {
		return fmt.Errorf("%w: %d leases, at most %d are settled in one commit; split it", ErrBatchTooLarge, len(settlements), MaxBatchJobs)
	}
	for i := range settlements {
		s := &settlements[i]
		if s.Lease == nil || s.Lease.Envelope == nil {
			return invalid("settlement", "it has no lease; make it by a method of the lease, such as Lease.Ack")
		}
		switch s.Outcome {
		case OutcomeAck, OutcomeNack, OutcomeAbandon, OutcomeRelease, OutcomeSnooze:
			if n := len(s.Reason); s.Outcome == OutcomeAbandon && (n == 0 || n > MaxNameBytes) {
				return invalid("reason", "an abandoned job needs one of 1 to %d bytes; this one has %d", MaxNameBytes, n)
			}
		default:
			return invalid("settlement", "%q is no outcome; make it by a method of the lease, such as Lease.Ack", truncate(string(s.Outcome), 32))
		}
	}
	return nil
}

// SettleErrors is the error of a Settle by those of its settlements, in their order: nil when
// all went through, or else a [*SettleError].
func SettleErrors(settlements []Settlement, errs []error) error {
	var failed map[*Lease]error
	for i, err := range errs {
		if err == nil {
			continue
		}
		if failed == nil {
			failed = make(map[*Lease]error)
		}
		failed[settlements[i].Lease] = err
	}
	if failed == nil {
		return nil
	}
	return &SettleError{failed}
}

// NotAccepted is the error of an operation whose context ended before its
// transaction began: it matches [ErrNotAccepted] and the context's error and cause.
func NotAccepted(ctx context.Context) error {
	err := fmt.Errorf("%w: %w", ErrNotAccepted, ctx.Err())
	if cause := context.Cause(ctx); cause != ctx.Err() {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
