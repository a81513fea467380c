package cenkalti_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/cenkalti"
)

func half() float64 { return 0.5 }

// take steps a BackOff n times.
func take(b backoff.BackOff, n int) []time.Duration {
	var all []time.Duration
	for range n {
		all = append(all, b.NextBackOff())
	}
	return all
}

func TestToBackOffGivesTheDelaysThenStops(t *testing.T) {
	b := cenkalti.ToBackOff(pawl.Exponential(5*time.Second, 2).Cap(45*time.Second), 5, half)
	want := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 45 * time.Second, backoff.Stop, backoff.Stop}
	require.Equal(t, want, take(b, 7), "the first is the wait before attempt 2")

	b.Reset()
	require.Equal(t, want, take(b, 7), "Reset starts over")

	b.Reset()
	take(b, 2)
	b.Reset()
	require.Equal(t, want, take(b, 7), "Reset starts over from the middle too")
}

func TestToBackOffWithoutRetriesStopsAtOnce(t *testing.T) {
	require.Equal(t, backoff.Stop, cenkalti.ToBackOff(pawl.Fixed(time.Second), 0, half).NextBackOff())
}

// policyFunc is a policy of an app's own.
type policyFunc func(pawl.Retry) (time.Duration, bool)

func (f policyFunc) Delay(r pawl.Retry) (time.Duration, bool) { return f(r) }

func TestToBackOffGivesThePolicyWhatAWorkerWould(t *testing.T) {
	var seen []pawl.Retry
	draws := 0.0
	b := cenkalti.ToBackOff(policyFunc(func(r pawl.Retry) (time.Duration, bool) {
		seen = append(seen, r)
		return time.Duration(r.Attempt), true
	}), 3, func() float64 { draws += 0.25; return draws })

	require.Equal(t, []time.Duration{2, 3, 4, backoff.Stop}, take(b, 4))
	require.Equal(t, []pawl.Retry{
		{Completed: 1, Attempt: 2, Random: 0.25},
		{Completed: 2, Attempt: 3, Random: 0.5},
		{Completed: 3, Attempt: 4, Random: 0.75},
	}, seen, "chance is drawn once for each decision")
}

func TestToBackOffStopsWhenThePolicyGivesUp(t *testing.T) {
	b := cenkalti.ToBackOff(policyFunc(func(r pawl.Retry) (time.Duration, bool) {
		return time.Second, r.Attempt < 4
	}), 10, half)
	require.Equal(t, []time.Duration{time.Second, time.Second, backoff.Stop}, take(b, 3))
}

func TestToBackOffDrivesBackoffRetry(t *testing.T) {
	failure := errors.New("still failing")
	runs := 0
	err := backoff.Retry(func() error { runs++; return failure }, cenkalti.ToBackOff(pawl.None(), 4, half))
	require.ErrorIs(t, err, failure)
	require.Equal(t, 5, runs, "total runs are max retries + 1")

	runs = 0
	require.NoError(t, backoff.Retry(func() error {
		if runs++; runs < 3 {
			return failure
		}
		return nil
	}, cenkalti.ToBackOff(pawl.None(), 4, half)))
	require.Equal(t, 3, runs)
}

// counting is a BackOff that tells how it was used.
type counting struct {
	steps, resets int
	stopAt        int // the step that answers Stop, 0 for none
}

func (c *counting) Reset() { c.resets++ }

func (c *counting) NextBackOff() time.Duration {
	if c.steps++; c.steps == c.stopAt {
		return backoff.Stop
	}
	return time.Duration(c.steps) * time.Millisecond
}

func TestFromBackOffStepsAttemptMinusOneTimes(t *testing.T) {
	for _, test := range []struct{ attempt, steps int }{
		{0, 0}, {1, 0}, {2, 1}, {3, 2}, {10, 9}, {1000, 999}, {1001, 1000},
		{1002, 1000}, {5000, 1000}, {math.MaxInt, 1000}, // held after 1 000
	} {
		var b *counting
		p := cenkalti.FromBackOff(func() backoff.BackOff { b = new(counting); return b })
		delay, ok := p.Delay(pawl.Retry{Completed: test.attempt - 1, Attempt: test.attempt, Random: 0.9})
		require.True(t, ok)
		require.Equal(t, test.steps, b.steps, "attempt %d", test.attempt)
		require.Equal(t, time.Duration(test.steps)*time.Millisecond, delay, "the last step is the delay before attempt %d", test.attempt)
	}
}

func TestFromBackOffGivesUpAtStop(t *testing.T) {
	p := cenkalti.FromBackOff(func() backoff.BackOff { return &counting{stopAt: 3} })
	for attempt, goesOn := range map[int]bool{2: true, 3: true, 4: false, 5: false, 2000: false} {
		delay, ok := p.Delay(pawl.Retry{Completed: attempt - 1, Attempt: attempt})
		require.Equal(t, goesOn, ok, "attempt %d", attempt)
		if !goesOn {
			require.Zero(t, delay)
		}
	}
}

func TestFromBackOffDrawsAFreshIntervalEachTime(t *testing.T) {
	made, drawn := 0, time.Duration(0)
	p := cenkalti.FromBackOff(func() backoff.BackOff {
		made++
		return drawing{&drawn}
	})
	retry := pawl.Retry{Completed: 2, Attempt: 3}
	for i := 1; i <= 5; i++ {
		delay, ok := p.Delay(retry)
		require.True(t, ok)
		require.Equal(t, time.Duration(2*i), delay, "two steps a decision, none of them repeated")
		require.Equal(t, i, made, "a BackOff of its own for each decision")
	}
}

// drawing returns what its source draws next, as a BackOff with jitter does.
type drawing struct{ source *time.Duration }

func (drawing) Reset() {}

func (d drawing) NextBackOff() time.Duration { *d.source++; return *d.source }

// leaping is a clock that is an hour later at every look.
type leaping struct{ now time.Time }

func (l *leaping) Now() time.Time { l.now = l.now.Add(time.Hour); return l.now }

// MaxElapsedTime measures a loop inside one process, and would end the retries of
// a job after its 15 minutes.
func TestFromBackOffDisarmsMaxElapsedTime(t *testing.T) {
	newBackOff := func() backoff.BackOff {
		return backoff.NewExponentialBackOff(
			backoff.WithClockProvider(&leaping{time.Unix(0, 0)}),
			backoff.WithMaxElapsedTime(time.Nanosecond),
			backoff.WithRandomizationFactor(0),
		)
	}
	require.Equal(t, backoff.Stop, newBackOff().NextBackOff(), "armed, it stops at the first step")

	p := cenkalti.FromBackOff(newBackOff)
	for attempt, want := range map[int]time.Duration{
		2: 500 * time.Millisecond, 3: 750 * time.Millisecond, 4: 1125 * time.Millisecond, 1001: backoff.DefaultMaxInterval, math.MaxInt: backoff.DefaultMaxInterval,
	} {
		delay, ok := p.Delay(pawl.Retry{Completed: attempt - 1, Attempt: attempt})
		require.True(t, ok, "attempt %d", attempt)
		require.Equal(t, want, delay, "attempt %d", attempt)
	}
}

func TestFromBackOffNeverWaitsANegativeTime(t *testing.T) {
	p := cenkalti.FromBackOff(func() backoff.BackOff { return backoff.NewConstantBackOff(-time.Hour) })
	delay, ok := p.Delay(pawl.Retry{Completed: 1, Attempt: 2})
	require.True(t, ok)
	require.Zero(t, delay)
}

func TestPolicyThroughBackOffAndBack(t *testing.T) {
	own := pawl.Exponential(5*time.Second, 2).Cap(45 * time.Second)
	back := cenkalti.FromBackOff(func() backoff.BackOff { return cenkalti.ToBackOff(own, 6, half) })
	for attempt := 0; attempt <= 7; attempt++ {
		want, _ := own.Delay(pawl.Retry{Completed: attempt - 1, Attempt: attempt})
		got, ok := back.Delay(pawl.Retry{Completed: attempt - 1, Attempt: attempt})
		require.True(t, ok)
		require.Equal(t, want, got, "attempt %d", attempt)
	}
	_, ok := back.Delay(pawl.Retry{Completed: 7, Attempt: 8})
	require.False(t, ok, "attempt 8 would be the seventh retry of six")
}

func TestBackOffThroughPolicyAndBack(t *testing.T) {
	policy := cenkalti.FromBackOff(func() backoff.BackOff {
		return backoff.NewExponentialBackOff(backoff.WithRandomizationFactor(0))
	})
	b := cenkalti.ToBackOff(policy, 4, half)
	want := []time.Duration{500 * time.Millisecond, 750 * time.Millisecond, 1125 * time.Millisecond, 1687500 * time.Microsecond, backoff.Stop}
	require.Equal(t, want, take(b, 5))
	b.Reset()
	require.Equal(t, want, take(b, 5))
}
