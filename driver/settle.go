package driver

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
	"github.com/gopawl/pawl/internal/errtree"
)

// CheckSettle refuses a Settle that no queue accepts: [pawl.ErrBatchTooLarge] for too many
// settlements, and [pawl.ErrInvalid] for one without a lease or an outcome, for an abandon without
// a reason of at most [pawl.MaxNameBytes], and for a result that is too large or not of an ack.
func CheckSettle(settlements []pawl.Settlement) error {
	if len(settlements) > pawl.MaxBatchJobs {
		return fmt.Errorf("%w: %d leases, at most %d are settled in one commit; split it",
			pawl.ErrBatchTooLarge, len(settlements), pawl.MaxBatchJobs)
	}
	for i := range settlements {
		s := &settlements[i]
		if s.Lease == nil || s.Lease.Envelope == nil {
			return invalid("settlement", "it has no lease; make it by a method of the lease, such as Lease.Ack")
		}
		switch s.Outcome {
		case pawl.OutcomeAck, pawl.OutcomeNack, pawl.OutcomeAbandon, pawl.OutcomeRelease, pawl.OutcomeSnooze, pawl.OutcomeThrottle:
			if n := len(s.Reason); s.Outcome == pawl.OutcomeAbandon && (n == 0 || n > pawl.MaxNameBytes) {
				return invalid("reason", "an abandoned job needs one of 1 to %d bytes; this one has %d", pawl.MaxNameBytes, n)
			}
			if n := len(s.Result); n > pawl.MaxResult || n > 0 && s.Outcome != pawl.OutcomeAck {
				return invalid("result", "it has %d bytes; an ack takes %d, and no other settlement takes one", n, pawl.MaxResult)
			}
			if throttles := s.Outcome == pawl.OutcomeThrottle; throttles && s.Rest != pawl.ThisKey && s.Rest != pawl.ThisQueue || !throttles && s.Rest != "" {
				return invalid("rest", "%q belongs to no settlement %s; a throttle takes %q or %q", ellipsis.Abbreviate(string(s.Rest), 32), s.Outcome, pawl.ThisKey, pawl.ThisQueue)
			}
		default:
			return invalid("settlement", "%q is no outcome; make it by a method of the lease, such as Lease.Ack",
				ellipsis.Abbreviate(string(s.Outcome), 32))
		}
	}
	return nil
}

// SupportsSettle returns an error that matches [pawl.ErrUnsupported] for a settlement with a result
// on a queue without [pawl.Results], and for a throttle on one without [pawl.LimitKeys].
func SupportsSettle(a pawl.Ability, settlements []pawl.Settlement) error {
	for i := range settlements {
		if settlements[i].Outcome == pawl.OutcomeThrottle && a&pawl.LimitKeys == 0 {
			return lacks("throttle", pawl.LimitKeys)
		}
		if settlements[i].Result != nil && a&pawl.Results == 0 {
			return lacks("result", pawl.Results)
		}
	}
	return nil
}

// CheckRest refuses a throttle of a key if the job has no key, or if its queue has no limits per key. Its
// error is a [*pawl.InvalidError].
func CheckRest(s *pawl.Settlement, key, queue string, l pawl.Limits) error {
	switch {
	case s.Outcome != pawl.OutcomeThrottle || s.Rest != pawl.ThisKey:
		return nil
	case key == "":
		return invalid("rest", "job %s has no key that could rest; throttle its queue, or enqueue it with a key", s.Lease.ID)
	case !l.PerKey():
		return invalid("rest", "queue %q has no limits per key, so no key of it rests; declare one, such as RunningPerKey, or throttle the queue", queue)
	}
	return nil
}

// SettleErrors returns the error of a Settle, given the errors of its settlements in their order:
// nil if all of them succeeded, or else a [*pawl.SettleError].
func SettleErrors(settlements []pawl.Settlement, errs []error) error {
	var failed map[*pawl.Lease]error
	for i, err := range errs {
		if err == nil {
			continue
		}
		if failed == nil {
			failed = make(map[*pawl.Lease]error)
		}
		failed[settlements[i].Lease] = err
	}
	if failed == nil {
		return nil
	}
	return &pawl.SettleError{Failed: failed}
}

// NextAttempt returns the 1-based number of the attempt that follows completed ones. It saturates at
// the largest int.
func NextAttempt(completed int) int { return root.NextAttempt(completed) }

// CountsAttempt reports whether an abandon with this reason counts a failed attempt. It does not
// if the handler never ran.
func CountsAttempt(r pawl.Reason) bool {
	return r != pawl.ReasonSignature && r != pawl.ReasonPayload
}

// NewFailure returns the entry in the history of an attempt that ended with cause. It truncates the cause
// to [pawl.MaxErrorText] bytes.
func NewFailure(attempt int, at time.Time, cause string) pawl.Failure {
	return pawl.Failure{Attempt: attempt, At: at, Error: ellipsis.Truncate(cause, pawl.MaxErrorText)}
}

// FailureOf returns the entry of an attempt that ended with cause, without its number and time. The
// stack comes from an error in the tree of cause that has a method StackTrace() string. Both
// texts are truncated to [pawl.MaxErrorText] bytes.
func FailureOf(cause error) (f pawl.Failure) {
	if cause == nil {
		return f
	}
	f.Error = ellipsis.Truncate(cause.Error(), pawl.MaxErrorText)
	if traced, ok := errtree.Find[interface{ StackTrace() string }](cause); ok {
		f.Stack = ellipsis.Truncate(traced.StackTrace(), pawl.MaxErrorText)
	}
	return f
}

// Took returns how long the attempt of a lease has lasted, 0 if it did not begin.
func Took(l *pawl.Lease) time.Duration {
	if l.Started.IsZero() {
		return 0
	}
	return time.Since(l.Started)
}

// MarkSettled notes that the job was acked in a transaction of the app, so that its worker no longer
// settles or extends the lease. Queues call it once the transaction is durable.
func MarkSettled(l *pawl.Lease) { root.MarkSettled(l) }

// Settled reports whether [MarkSettled] was called.
func Settled(l *pawl.Lease) bool { return root.Settled(l) }
