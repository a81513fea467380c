package pawl

import (
	"fmt"
	"math"
	"time"
)

// Policy decides how long a job waits after a failed attempt. Implementations are
// pure: randomness comes from [Retry].
type Policy interface {
	// Delay returns the wait before r.Attempt, or false to give up, which
	// abandons the job although it has retries left.
	Delay(r Retry) (delay time.Duration, ok bool)
}

// checkPolicy returns p in the form in which a worker uses it, or an
// [*InvalidError]: a pointer to a [Strategy] becomes the strategy, and a strategy
// with an error is refused. Nil stays nil.
func checkPolicy(p Policy) (Policy, error) {
	if s, ok := p.(*Strategy); ok {
		if s == nil {
			return nil, invalid("policy", "it is a nil pointer")
		}
		p = *s
	}
	if s, ok := p.(Strategy); ok && s.Err() != nil {
		return nil, s.Err()
	}
	return p, nil
}

// Retry is what a [Policy] receives about a failed attempt. After the n-th attempt,
// Completed is n and Attempt is n+1.
type Retry struct {
	Completed int     // attempts that ended, the failed one included: 1 or more
	Attempt   int     // the 1-based number of the attempt that would come next: 2 or more
	Err       error   // what the failed attempt returned
	Random    float64 // uniform in [0, 1), drawn afresh for this decision
}

// Strategy is a policy that can be stored with a job: fixed or exponential, with
// a cap and jitter. The zero value retries at once.
//
// Build one with a constructor and refine it:
//
//	pawl.Exponential(5*time.Second, 2).Cap(5*time.Minute).Jitter(0.15)
//
// A bad value is kept as an error. [Strategy.Err] returns it, and so does
// everything that takes a strategy.
type Strategy struct {
	form       form
	base       time.Duration
	multiplier float64
	capped     bool
	max        time.Duration
	jitter     jitter
	fraction   float64
	err        error
}

type form uint8

const (
	formNone form = iota
	formFixed
	formExponential
)

type jitter uint8

const (
	jitterNone jitter = iota
	jitterProportional
	jitterFull
)

// DefaultJitter is a good fraction for [Strategy.Jitter].
const DefaultJitter = 0.15

// None retries at once, without a delay. For no retry at all see [MaxRetries].
func None() Strategy { return Strategy{} }

// Fixed waits base before every retry.
func Fixed(base time.Duration) Strategy {
	return Strategy{form: formFixed, base: base}.checked()
}

// Exponential waits base * multiplier^(attempt-2) before attempt 2, 3, 4, …: the
// first retry waits base. Multiplier is 1 or more.
func Exponential(base time.Duration, multiplier float64) Strategy {
	return Strategy{form: formExponential, base: base, multiplier: multiplier}.checked()
}

// DefaultStrategy is used where neither job, kind nor worker names a policy:
// exponential from 500 ms, doubling, at most 30 s, full jitter.
func DefaultStrategy() Strategy {
	return Exponential(500*time.Millisecond, 2).Cap(30 * time.Second).FullJitter()
}

// Cap bounds every delay, jitter included. It may lie below the base.
func (s Strategy) Cap(max time.Duration) Strategy {
	s.capped, s.max = true, max
	return s.checked()
}

// Jitter draws each delay d uniformly from [d*(1-fraction), d*(1+fraction)], and
// never above the cap. Fraction is between 0 and 1; see [DefaultJitter].
func (s Strategy) Jitter(fraction float64) Strategy {
	s.jitter, s.fraction = jitterProportional, fraction
	return s.checked()
}

// FullJitter draws each delay d uniformly from [0, d].
func (s Strategy) FullJitter() Strategy {
	s.jitter, s.fraction = jitterFull, 0
	return s.checked()
}

// Err returns the [*InvalidError] of the first bad value, or nil.
func (s Strategy) Err() error { return s.err }

// checked keeps the first error of a chain.
func (s Strategy) checked() Strategy {
	if s.err != nil {
		return s
	}
	switch {
	case s.base < 0:
		s.err = invalid("policy", "base is %v, but a delay cannot be negative", s.base)
	case s.form == formExponential && !(s.multiplier >= 1 && !math.IsInf(s.multiplier, 0)):
		s.err = invalid("policy", "multiplier is %v, but it must be a number of 1 or more", s.multiplier)
	case s.capped && s.max < 0:
		s.err = invalid("policy", "cap is %v, but a delay cannot be negative", s.max)
	case !(s.fraction >= 0 && s.fraction <= 1):
		s.err = invalid("policy", "jitter fraction is %v, but it must lie between 0 and 1", s.fraction)
	}
	return s
}

// Delay makes a Strategy a [Policy]. It never gives up.
func (s Strategy) Delay(r Retry) (time.Duration, bool) { return s.Before(r.Attempt, r.Random), true }

// Before returns the wait before the 1-based attempt, with random in [0, 1) for
// the jitter: 0 before attempt 1 and below. The result is never negative, never
// above the cap, and saturates instead of overflowing. For a strategy with an
// error it is 0.
func (s Strategy) Before(attempt int, random float64) time.Duration {
	if s.err != nil || attempt <= 1 || s.form == formNone || s.base <= 0 {
		return 0
	}
	d := float64(s.base)
	if s.form == formExponential {
		d *= math.Pow(s.multiplier, float64(attempt-2))
	}
	limit := float64(math.MaxInt64)
	if s.capped {
		limit = float64(s.max)
	}
	d = min(d, limit)
	switch s.jitter {
	case jitterProportional:
		low, high := d*(1-s.fraction), min(d*(1+s.fraction), limit)
		d = low + random*(high-low)
	case jitterFull:
		d *= random
	}
	return s.saturate(d)
}

// saturate turns a non-negative number of nanoseconds into a duration. It
// compares before it converts, because the largest int64 has no exact float64.
func (s Strategy) saturate(d float64) time.Duration {
	longest := time.Duration(math.MaxInt64)
	if s.capped {
		longest = s.max
	}
	if d >= float64(longest) {
		return longest
	}
	return time.Duration(d)
}

// String describes the strategy in the words of its constructors.
func (s Strategy) String() string {
	var text string
	switch s.form {
	case formFixed:
		text = fmt.Sprintf("fixed %v", s.base)
	case formExponential:
		text = fmt.Sprintf("exponential %v × %v", s.base, s.multiplier)
	default:
		return "none"
	}
	if s.capped {
		text += fmt.Sprintf(", at most %v", s.max)
	}
	switch s.jitter {
	case jitterProportional:
		text += fmt.Sprintf(", jitter %v", s.fraction)
	case jitterFull:
		text += ", full jitter"
	}
	return text
}
