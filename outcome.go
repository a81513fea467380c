package pawl

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl/internal/errtree"
)

// Permanent marks a handler's error as permanent: no retry helps, and the job
// becomes dead at once. A nil error stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// IsPermanent reports whether err, or an error that it wraps, came from
// [Permanent].
func IsPermanent(err error) bool {
	_, ok := errtree.Find[*permanentError](err)
	return ok
}

// RetryAfter marks a handler's error with the delay before the next attempt, in place of
// the policy's. The policy's cap does not bound it. The job's MaxRetries still does
// bound how many retries there are. A negative delay counts as 0, a nil error stays nil.
func RetryAfter(delay time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{max(delay, 0), err}
}

type retryAfterError struct {
	delay time.Duration
	err   error
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

// RetryDelay returns the delay that [RetryAfter] put on err.
func RetryDelay(err error) (time.Duration, bool) {
	r, ok := errtree.Find[*retryAfterError](err)
	if !ok {
		return 0, false
	}
	return r.delay, true
}

// Snooze returns an error for a handler to return, so that its job runs again after delay. It is
// not a failure: no attempt is counted, and the count of earlier attempts restarts at 0. A
// negative delay counts as 0.
//
// For work that recurs, use package schedule. The delay of Snooze starts when the attempt ends,
// so the times of the attempts drift.
//
// A job that snoozes keeps its unique key. If its handler instead enqueues its own kind and key,
// nothing is stored, and the handler gets [ErrOwnJob].
func Snooze(delay time.Duration) error { return &snoozeError{max(delay, 0)} }

type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %v", e.delay) }

// SnoozeDelay returns the delay of an error made by [Snooze].
func SnoozeDelay(err error) (time.Duration, bool) {
	s, ok := errtree.Find[*snoozeError](err)
	if !ok {
		return 0, false
	}
	return s.delay, true
}

// Rest is what rests after a [Throttle].
type Rest string

const (
	ThisKey   Rest = "key"   // the jobs of the queue with the [Key] of the job; the queue needs limits per key
	ThisQueue Rest = "queue" // all jobs of the queue
)

// Throttle returns an error for a handler to return, so that other jobs wait with its own, for example when a
// server answers 429 Too Many Requests. The job returns to its place in the order and counts no attempt.
// Until delay has passed, no job of its key, or of its queue, starts, even after a restart. Jobs that were
// fetched before go on. It does not shorten a rest that ends later. A negative delay counts as 0.
//
// A queue without [LimitKeys] refuses it, and so does one without limits per key for [ThisKey]. The attempt
// fails then, with the reason.
func Throttle(delay time.Duration, rest Rest) error { return &throttleError{max(delay, 0), rest} }

type throttleError struct {
	delay time.Duration
	rest  Rest
}

func (e *throttleError) Error() string {
	return fmt.Sprintf("throttled: this %s rests for %v", e.rest, e.delay)
}

// ThrottleDelay returns the arguments of [Throttle], for an error made by it.
func ThrottleDelay(err error) (time.Duration, Rest, bool) {
	t, ok := errtree.Find[*throttleError](err)
	if !ok {
		return 0, "", false
	}
	return t.delay, t.rest, true
}
