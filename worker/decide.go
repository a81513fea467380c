package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// verb is what a worker tells the queue about an attempt.
type verb uint8

const (
	ack verb = iota
	nack
	abandon
	release
	snooze
)

// decision is the verb with what it needs.
type decision struct {
	verb     verb
	delay    time.Duration
	reason   pawl.Reason
	cause    error
	timedOut bool // the attempt failed by its timeout
}

// decide says what the result of a run means for its job. Interrupted tells that
// the run was told to stop before it returned; policy is the one that applies;
// random is uniform in [0, 1).
func decide(e *pawl.Envelope, err error, interrupted bool, policy pawl.Policy, random float64) decision {
	if err == nil {
		return decision{verb: ack}
	}
	if payload := (*payloadError)(nil); errors.As(err, &payload) {
		return decision{verb: abandon, reason: pawl.ReasonPayload, cause: err}
	}
	if delay, ok := pawl.SnoozeDelay(err); ok {
		return decision{verb: snooze, delay: delay}
	}
	if pawl.IsPermanent(err) {
		return decision{verb: abandon, reason: pawl.ReasonPermanent, cause: err}
	}
	if interrupted {
		return decision{verb: release}
	}
	if e.LastAttempt() {
		return decision{verb: abandon, reason: pawl.ReasonExhausted, cause: err}
	}
	if delay, ok := pawl.RetryDelay(err); ok {
		return decision{verb: nack, delay: delay, cause: err}
	}
	delay, ok := delayAfter(e, err, policy, random)
	if !ok {
		return decision{verb: abandon, reason: pawl.ReasonPermanent, cause: err}
	}
	return decision{verb: nack, delay: max(delay, 0), cause: err}
}

// payloadError says that the arguments of a job do not fit its handler, which did not run.
type payloadError struct{ err error }

func (e *payloadError) Error() string { return e.err.Error() }
func (e *payloadError) Unwrap() error { return e.err }

// because puts the reason why a run was ended before the error that it then returned,
// for the history: a handler mostly says no more than that its context ended.
func because(err, ended error) error {
	for _, cause := range [...]error{ErrTimeout, ErrDeadline, ErrCancelled} {
		if errors.Is(ended, cause) && !errors.Is(err, cause) {
			return fmt.Errorf("%w: %w", cause, err)
		}
	}
	return err
}

// delayAfter asks the policy. One that panics would take the process down outside
// of the handler, again and again; the default strategy answers in its place.
func delayAfter(e *pawl.Envelope, err error, policy pawl.Policy, random float64) (delay time.Duration, ok bool) {
	completed := pawl.NextAttempt(e.Attempts)
	r := pawl.Retry{Completed: completed, Attempt: pawl.NextAttempt(completed), Err: err, Random: random}
	defer func() {
		if recover() != nil {
			delay, ok = pawl.DefaultStrategy().Delay(r)
		}
	}()
	return policy.Delay(r)
}

// policyOf is the policy that applies to a job: its own, its kind's, the worker's.
func (w *Worker) policyOf(a *attempt) pawl.Policy {
	switch {
	case a.Policy != nil:
		return *a.Policy
	case a.handler.policy != nil:
		return a.handler.policy
	}
	return w.opts.Policy
}
