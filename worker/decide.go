package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/errtree"
)

// decide returns the settlement, without its lease, that follows from the result of an
// attempt. Interrupted means that a stop ended the context before the handler returned. Policy is
// the policy of the job. Random is uniform in [0, 1).
func decide(e *pawl.Envelope, err error, interrupted bool, policy pawl.Policy, random float64) pawl.Settlement {
	nack := func(delay time.Duration) pawl.Settlement {
		return pawl.Settlement{Outcome: pawl.OutcomeNack, Delay: delay, Cause: err}
	}
	abandon := func(reason pawl.Reason) pawl.Settlement {
		return pawl.Settlement{Outcome: pawl.OutcomeAbandon, Reason: reason, Cause: err}
	}
	if err == nil {
		return pawl.Settlement{Outcome: pawl.OutcomeAck}
	}
	if _, ok := errtree.Find[*payloadError](err); ok {
		return abandon(pawl.ReasonPayload)
	}
	if delay, ok := pawl.SnoozeDelay(err); ok {
		return pawl.Settlement{Outcome: pawl.OutcomeSnooze, Delay: delay}
	}
	if delay, rest, ok := pawl.ThrottleDelay(err); ok {
		return pawl.Settlement{Outcome: pawl.OutcomeThrottle, Delay: delay, Rest: rest}
	}
	if pawl.IsPermanent(err) {
		return abandon(pawl.ReasonPermanent)
	}
	if interrupted {
		return pawl.Settlement{Outcome: pawl.OutcomeRelease}
	}
	if e.LastAttempt() {
		return abandon(pawl.ReasonExhausted)
	}
	if delay, ok := pawl.RetryDelay(err); ok {
		return nack(delay)
	}
	delay, ok := delayAfter(e, err, policy, random)
	if !ok {
		return abandon(pawl.ReasonPermanent)
	}
	return nack(max(delay, 0))
}

// payloadError says that the arguments of a job do not fit its handler, which did not run.
type payloadError struct{ err error }

func (e *payloadError) Error() string { return e.err.Error() }
func (e *payloadError) Unwrap() error { return e.err }

// because puts the reason why an attempt was ended in front of the error that its handler
// returned. The history needs the reason: usually the error of a handler says only that its
// context ended.
func because(err, ended error) error {
	for _, cause := range [...]error{ErrTimeout, ErrDeadline, ErrCancelled} {
		if errors.Is(ended, cause) && !errors.Is(err, cause) {
			return fmt.Errorf("%w: %w", cause, err)
		}
	}
	return err
}

// delayAfter asks the policy for the delay. If the policy panics, delayAfter asks the
// default strategy instead. Otherwise the panic, which is outside of the handler, would
// crash the process repeatedly.
func delayAfter(e *pawl.Envelope, err error, policy pawl.Policy, random float64) (delay time.Duration, ok bool) {
	completed := driver.NextAttempt(e.Attempts)
	r := pawl.Retry{Completed: completed, Attempt: driver.NextAttempt(completed), Err: err, Random: random}
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
