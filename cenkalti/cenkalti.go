// Package cenkalti turns retry policies into values of github.com/cenkalti/backoff/v4, and back.
package cenkalti

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// ToBackOff turns a policy into a backoff.BackOff for a retry loop inside the process,
// as backoff.Retry runs it. The first NextBackOff returns the wait before attempt 2.
// After maxRetries calls, or when the policy gives up, it returns backoff.Stop. Random
// draws the jitter in [0, 1), for example rand.Float64 of math/rand/v2.
//
// The policy sees no error, because a BackOff does not receive one. The result is not safe for
// use by several goroutines at once.
func ToBackOff(p pawl.Policy, maxRetries int, random func() float64) backoff.BackOff {
	return &policyBackOff{policy: p, maxRetries: maxRetries, random: random}
}

type policyBackOff struct {
	policy     pawl.Policy
	maxRetries int
	random     func() float64
	completed  int
}

func (b *policyBackOff) NextBackOff() time.Duration {
	if b.completed >= b.maxRetries {
		return backoff.Stop
	}
	b.completed++
	d, ok := b.policy.Delay(pawl.Retry{
		Completed: b.completed,
		Attempt:   driver.NextAttempt(b.completed),
		Random:    b.random(),
	})
	if !ok {
		return backoff.Stop
	}
	return max(d, 0) // -1 means Stop
}

func (b *policyBackOff) Reset() { b.completed = 0 }

// maxSteps bounds how often one decision steps a BackOff.
const maxSteps = 1000

// FromBackOff turns a factory of backoff.BackOff into a policy. Each decision
// makes a new BackOff and calls its NextBackOff attempt-1 times, but at most 1,000
// times, so random intervals differ between decisions. backoff.Stop gives up.
//
// FromBackOff turns off MaxElapsedTime of a *backoff.ExponentialBackOff, 15
// minutes by default: it measures a loop inside one process, and MaxRetries
// bounds the retries of a job. For a BackOff that wraps another, set the
// MaxElapsedTime to 0 yourself.
func FromBackOff(factory func() backoff.BackOff) pawl.Policy { return backOffPolicy(factory) }

type backOffPolicy func() backoff.BackOff

func (factory backOffPolicy) Delay(r pawl.Retry) (time.Duration, bool) {
	b := factory()
	if e, ok := b.(*backoff.ExponentialBackOff); ok {
		e.MaxElapsedTime = 0
	}
	b.Reset()
	var d time.Duration
	for range min(r.Attempt-1, maxSteps) {
		if d = b.NextBackOff(); d == backoff.Stop {
			return 0, false
		}
	}
	return max(d, 0), true
}
