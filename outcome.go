package pawl

import (
	"errors"
	"fmt"
	"time"
)

// Permanent marks a handler's error as one that no retry can cure: the worker
// abandons the job at once. A nil error stays nil.
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
	var p *permanentError
	return errors.As(err, &p)
}

// RetryAfter marks a handler's error with the delay before the next attempt, in
// place of the policy's. The policy's cap does not bound it; the job's max
// retries do. A negative delay counts as 0, a nil error stays nil.
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
	var r *retryAfterError
	if !errors.As(err, &r) {
		return 0, false
	}
	return r.delay, true
}

// Snooze is what a handler returns to have its job back after delay without
// having failed. It counts no attempt, and it counts attempts anew: a job that snoozes
// as its interval has all its retries in each interval. A negative delay counts as 0.
//
// An interval by Snooze starts when the run ends, so it drifts by the time that runs
// and failures take. Return Snooze of the time that is left until the next full hour or
// day for a schedule without drift.
//
// A job that snoozes keeps its unique key. A handler that enqueues its own kind and key
// instead stores nothing and gets [ErrOwnJob].
func Snooze(delay time.Duration) error { return &snoozeError{max(delay, 0)} }

type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %v", e.delay) }

// SnoozeDelay returns the delay of an error made by [Snooze].
func SnoozeDelay(err error) (time.Duration, bool) {
	var s *snoozeError
	if !errors.As(err, &s) {
		return 0, false
	}
	return s.delay, true
}
