package worker

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// policyFunc makes a function a policy.
type policyFunc func(pawl.Retry) (time.Duration, bool)

func (f policyFunc) Delay(r pawl.Retry) (time.Duration, bool) { return f(r) }

var errBroken = errors.New("broken")

func TestDecide(t *testing.T) {
	fixed := pawl.Fixed(7 * time.Second)
	givesUp := policyFunc(func(pawl.Retry) (time.Duration, bool) { return 0, false })
	negative := policyFunc(func(pawl.Retry) (time.Duration, bool) { return -time.Second, true })
	broken := policyFunc(func(pawl.Retry) (time.Duration, bool) { panic("broken") })
	permanent := pawl.Permanent(errBroken)
	retryAfter := pawl.RetryAfter(time.Hour, errBroken)

	for _, c := range []struct {
		rule        string
		attempts    int // before this one; max retries is 3
		err         error
		interrupted bool
		policy      pawl.Policy
		want        pawl.Settlement
	}{
		{rule: "nil is an ack", want: pawl.Settlement{Outcome: pawl.OutcomeAck}},
		{rule: "nil is an ack on the last attempt", attempts: 3, want: pawl.Settlement{Outcome: pawl.OutcomeAck}},
		{rule: "nil is an ack although the worker stops", interrupted: true, want: pawl.Settlement{Outcome: pawl.OutcomeAck}},

		{rule: "an error is a nack with the policy's delay", err: errBroken,
			want: pawl.Settlement{Outcome: pawl.OutcomeNack, Delay: 7 * time.Second, Cause: errBroken}},
		{rule: "the attempt before the last may be retried", attempts: 2, err: errBroken,
			want: pawl.Settlement{Outcome: pawl.OutcomeNack, Delay: 7 * time.Second, Cause: errBroken}},
		{rule: "the attempt after max retries is the last", attempts: 3, err: errBroken,
			want: pawl.Settlement{Outcome: pawl.OutcomeAbandon, Reason: pawl.ReasonExhausted, Cause: errBroken}},
		{rule: "more attempts than max retries are no way around it", attempts: 9, err: errBroken,
			want: pawl.Settlement{Outcome: pawl.OutcomeAbandon, Reason: pawl.ReasonExhausted, Cause: errBroken}},
		{rule: "an attempt that the stop interrupted is no failure", err: errBroken, interrupted: true,
			want: pawl.Settlement{Outcome: pawl.OutcomeRelease}},
		{rule: "nor when it is the last one", attempts: 3, err: errBroken, interrupted: true,
			want: pawl.Settlement{Outcome: pawl.OutcomeRelease}},

		{rule: "permanent needs no retry", err: permanent,
			want: pawl.Settlement{Outcome: pawl.OutcomeAbandon, Reason: pawl.ReasonPermanent, Cause: permanent}},
		{rule: "permanent is the reason on the last attempt too", attempts: 3, err: permanent,
			want: pawl.Settlement{Outcome: pawl.OutcomeAbandon, Reason: pawl.ReasonPermanent, Cause: permanent}},
		{rule: "permanent stays so while the worker stops", err: permanent, interrupted: true,
			want: pawl.Settlement{Outcome: pawl.OutcomeAbandon, Reason: pawl.ReasonPermanent, Cause: permanent}},
		{rule: "permanent goes before a delay", err: pawl.RetryAfter(time.Hour, permanent),
			want: pawl.Settlement{Outcome: pawl.OutcomeAbandon, Reason: pawl.ReasonPermanent, Cause: pawl.RetryAfter(time.Hour, permanent)}},

		{rule: "RetryAfter replaces the policy's delay", err: retryAfter,
			want: pawl.Settlement{Outcome: pawl.OutcomeNack, Delay: time.Hour, Cause: retryAfter}},
		{rule: "RetryAfter of 0 is at once", err: pawl.RetryAfter(0, errBroken),
			want: pawl.Settlement{Outcome: pawl.OutcomeNack, Cause: pawl.RetryAfter(0, errBroken)}},
		{rule: "RetryAfter goes before a policy that gives up", err: retryAfter, policy: givesUp,
			want: pawl.Settlement{Outcome: pawl.OutcomeNack, Delay: time.Hour, Cause: retryAfter}},
		{rule: "RetryAfter adds no retry", attempts: 3, err: retryAfter,
			want: pawl.Settlement{Outcome: pawl.OutcomeAbandon, Reason: pawl.ReasonExhausted, Cause: retryAfter}},
		{rule: "RetryAfter is no failure while the worker stops", err: retryAfter, interrupted: true,
			want: pawl.Settlement{Outcome: pawl.OutcomeRelease}},

		{rule: "snooze is no failure", err: pawl.Snooze(time.Minute),
			want: pawl.Settlement{Outcome: pawl.OutcomeSnooze, Delay: time.Minute}},
		{rule: "snooze on the last attempt is none either", attempts: 3, err: pawl.Snooze(time.Minute),
			want: pawl.Settlement{Outcome: pawl.OutcomeSnooze, Delay: time.Minute}},
		{rule: "throttle is no failure, also on the last attempt and while the worker stops", attempts: 3, interrupted: true,
			err:  fmt.Errorf("later: %w", pawl.Throttle(time.Minute, pawl.ThisKey)),
			want: pawl.Settlement{Outcome: pawl.OutcomeThrottle, Delay: time.Minute, Rest: pawl.ThisKey}},
		{rule: "snooze keeps its delay while the worker stops", err: pawl.Snooze(time.Minute), interrupted: true,
			want: pawl.Settlement{Outcome: pawl.OutcomeSnooze, Delay: time.Minute}},
		{rule: "snooze is found through wrapping", err: fmt.Errorf("later: %w", pawl.Snooze(time.Minute)),
			want: pawl.Settlement{Outcome: pawl.OutcomeSnooze, Delay: time.Minute}},

		{rule: "a policy may give up", err: errBroken, policy: givesUp,
			want: pawl.Settlement{Outcome: pawl.OutcomeAbandon, Reason: pawl.ReasonPermanent, Cause: errBroken}},
		{rule: "the default strategy answers for a policy that panics", err: errBroken, policy: broken,
			want: pawl.Settlement{Outcome: pawl.OutcomeNack, Delay: 250 * time.Millisecond, Cause: errBroken}},
		{rule: "a negative delay counts as none", err: errBroken, policy: negative,
			want: pawl.Settlement{Outcome: pawl.OutcomeNack, Cause: errBroken}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if c.policy == nil {
				c.policy = fixed
			}
			e := &pawl.Envelope{Attempts: c.attempts, MaxRetries: 3}
			require.Equal(t, c.want, decide(e, c.err, c.interrupted, c.policy, 0.5))
		})
	}
}

// A policy receives the number of completed attempts, this one included, and the
// number of the next one. Neither is off by one, and nothing overflows.
func TestDecideInformsPolicy(t *testing.T) {
	for _, c := range []struct{ attempts, completed, next int }{
		{0, 1, 2},
		{1, 2, 3},
		{998, 999, 1000},
		{math.MaxInt - 1, math.MaxInt, math.MaxInt},
		{math.MaxInt, math.MaxInt, math.MaxInt},
	} {
		var asked pawl.Retry
		policy := policyFunc(func(r pawl.Retry) (time.Duration, bool) { asked = r; return time.Second, true })
		e := &pawl.Envelope{Attempts: c.attempts, MaxRetries: math.MaxInt}
		retryOrLast := decide(e, errBroken, false, policy, 0.25)
		if c.attempts == math.MaxInt {
			require.Equal(t, pawl.OutcomeAbandon, retryOrLast.Outcome)
			continue
		}
		require.Equal(t, pawl.Retry{Completed: c.completed, Attempt: c.next, Err: errBroken, Random: 0.25}, asked)
	}
}
