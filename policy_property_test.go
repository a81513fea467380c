package pawl_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// drawn is a valid strategy with what it was made from.
type drawn struct {
	plain    pawl.Strategy // without jitter
	jittered pawl.Strategy
	base     time.Duration
	cap      time.Duration // math.MaxInt64 when there is none
	low      float64       // of the unjittered delay
	high     float64
}

// pick returns one of the edges as often as a value of its own.
func pick[T any](r *rand.Rand, own T, edges ...T) T {
	if r.IntN(2) == 0 {
		return own
	}
	return edges[r.IntN(len(edges))]
}

// duration is drawn by its magnitude, so that nanoseconds and centuries are alike
// frequent.
func duration(r *rand.Rand) time.Duration {
	return time.Duration(r.Uint64() >> (1 + r.IntN(63)))
}

func draw(r *rand.Rand) drawn {
	d := drawn{
		base: pick(r, duration(r), 0, 1, ms, sec, 30*sec, 24*time.Hour, 1<<53+1, math.MaxInt64-1, math.MaxInt64),
		cap:  math.MaxInt64,
		low:  1, high: 1,
	}
	// Multipliers nearer to 1 than this are left out: there the rounding of the
	// power exceeds the growth, and a delay may step back by a nanosecond.
	const least = 1.0001
	multiplier := pick(r, least+r.Float64()*r.Float64()*100, 1, least, 1.5, 2, 10, 1e18, 1e300, math.MaxFloat64)

	d.plain = pawl.Exponential(d.base, multiplier)
	if r.IntN(3) == 0 {
		d.plain = pawl.Fixed(d.base)
	}
	if r.IntN(4) != 0 {
		d.cap = pick(r, duration(r), 0, 1, 30*sec, d.base/2, d.base, 1<<53+1, math.MaxInt64-1, math.MaxInt64)
		d.plain = d.plain.Cap(d.cap)
	}
	switch r.IntN(3) {
	case 0:
		d.jittered = d.plain
	case 1:
		fraction := pick(r, r.Float64(), 0, pawl.DefaultJitter, 1)
		d.jittered, d.low, d.high = d.plain.Jitter(fraction), 1-fraction, 1+fraction
	case 2:
		d.jittered, d.low = d.plain.FullJitter(), 0
	}
	return d
}

// No attempt from 0 to the largest int gives a negative, overflowing or over-cap
// delay under any valid policy, jitter stays within its bounds, and without
// jitter a later attempt never waits less than an earlier one.
func TestNoDelayLeavesItsBounds(t *testing.T) {
	r := newRand(t)
	for range 20_000 {
		d := draw(r)
		require.NoError(t, d.jittered.Err())

		attempts := []int{0, 1, 2, 3, 4, 62, 63, 64, 65, 66, 67, 68, 69, 70, 1000, 1001,
			math.MaxInt32, math.MaxInt - 1, math.MaxInt}
		for range 5 {
			attempts = append(attempts, r.IntN(1002), int(r.Uint64()>>(1+r.IntN(63))))
		}
		slices.Sort(attempts)

		var last time.Duration
		for _, attempt := range attempts {
			plain := d.plain.Before(attempt, r.Float64())
			random := pick(r, r.Float64(), 0, 0.5, almostOne)
			got := d.jittered.Before(attempt, random)
			// Formatting is most of the time, so it is done only for a failure.
			if message := d.wrong(attempt, last, plain, got); message != "" {
				t.Fatalf("%s: %v, attempt %d, random %v: %v, without jitter %v",
					message, d.jittered, attempt, random, got, plain)
			}
			last = plain
		}
	}
}

// wrong says which rule a delay breaks, "" when none.
func (d *drawn) wrong(attempt int, last, plain, got time.Duration) string {
	// Floating point has 53 bits, and plain lost less than a nanosecond.
	slack := float64(plain)*1e-12 + 2
	switch {
	case plain < 0 || got < 0:
		return "negative"
	case plain > d.cap || got > d.cap:
		return "above the cap"
	case attempt <= 1 && (plain != 0 || got != 0):
		return "a wait before the first attempt"
	case attempt >= 2 && float64(plain) < min(float64(d.base), float64(d.cap))-slack:
		return "less than base and cap"
	case plain < last:
		return fmt.Sprintf("less than %v of an earlier attempt", last)
	case float64(got) < float64(plain)*d.low-slack:
		return "below the range of the jitter"
	case float64(got) > float64(plain)*d.high+slack:
		return "above the range of the jitter"
	}
	return ""
}

// The first saturated attempt gives the longest duration, and so do all that
// follow: nothing wraps around on the way.
func TestDelaySaturatesWithoutACap(t *testing.T) {
	strategy := pawl.Exponential(1, 2)
	require.Equal(t, time.Duration(1)<<62, strategy.Before(64, 0))
	for _, attempt := range []int{65, 66, 1000, 1100, math.MaxInt32, math.MaxInt - 1, math.MaxInt} {
		require.Equal(t, time.Duration(math.MaxInt64), strategy.Before(attempt, 0), "attempt %d", attempt)
	}
}
