// Package cenkalti turns retry policies into values of github.com/cenkalti/backoff/v4, and back.
package cenkalti

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// ToBackOff turns a policy into a backoff.BackOff for a retry loop inside the
// process, as backoff.Retry runs it. The first NextBackOff is the wait before
// attempt 2; after maxRetries of them, or when the policy gives up, it answers
// backoff.Stop. Random draws the jitter in [0, 1), for example rand.Float64 of
// math/rand/v2.
//
// The policy sees no error: a BackOff is not told of one. The result is not safe
// for use by several goroutines at once.
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
// makes a fresh BackOff and steps it attempt-1 times, at most 1 000 times and
// then held, so a drawn interval is drawn anew each time. backoff.Stop gives up.
//
// MaxElapsedTime of a *backoff.ExponentialBackOff, 15 minutes by default, is
// turned off: it measures a loop inside one process, and a job's retries are
// bounded by its max retries. A BackOff that wraps another cannot be looked
// into; set its MaxElapsedTime to 0 yourself.
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
