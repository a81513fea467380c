package pawl_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// almostOne is the largest value that a random source in [0, 1) returns.
var almostOne = math.Nextafter(1, 0)

func TestStrategyJitterIsExact(t *testing.T) {
	tests := []struct {
		name               string
		strategy           pawl.Strategy
		attempt            int
		low, middle, upper time.Duration // random = 0, 0.5, near 1
	}{
		{
			"proportional draws from [d(1-f), d(1+f)]",
			pawl.Fixed(10 * sec).Jitter(0.2), 2,
			8 * sec, 10 * sec, 12 * sec,
		},
		{
			"the usual fraction is 0.15",
			pawl.Fixed(10 * sec).Jitter(pawl.DefaultJitter), 2,
			8500 * ms, 10 * sec, 11500 * ms,
		},
		{
			"proportional follows the exponential delay",
			pawl.Exponential(10*sec, 2).Jitter(0.5), 4,
			20 * sec, 40 * sec, 60 * sec,
		},
		{
			"the cap cuts the upper side only",
			pawl.Fixed(10 * sec).Cap(11 * sec).Jitter(0.2), 2,
			8 * sec, 9500 * ms, 11 * sec,
		},
		{
			"a cap equal to the delay leaves the lower side",
			pawl.Fixed(10 * sec).Cap(10 * sec).Jitter(0.2), 2,
			8 * sec, 9 * sec, 10 * sec,
		},
		{
			"a cap below the base is the delay that jitter starts from",
			pawl.Fixed(10 * sec).Cap(4 * sec).Jitter(0.5), 2,
			2 * sec, 3 * sec, 4 * sec,
		},
		{
			"the cap counts whether it is given before the jitter or after",
			pawl.Exponential(10*sec, 2).Jitter(0.5).Cap(4 * sec), 7,
			2 * sec, 3 * sec, 4 * sec,
		},
		{
			"fraction 1 reaches from 0 to the double",
			pawl.Fixed(10 * sec).Jitter(1), 2,
			0, 10 * sec, 20 * sec,
		},
		{
			"fraction 0 changes nothing",
			pawl.Fixed(10 * sec).Jitter(0), 2,
			10 * sec, 10 * sec, 10 * sec,
		},
		{
			"full draws from [0, d]",
			pawl.Fixed(10 * sec).FullJitter(), 2,
			0, 5 * sec, 10 * sec,
		},
		{
			"full starts from the capped delay",
			pawl.Exponential(10*sec, 2).Cap(4 * sec).FullJitter(), 3,
			0, 2 * sec, 4 * sec,
		},
		{
			"full replaces proportional",
			pawl.Fixed(10 * sec).Jitter(0.2).FullJitter(), 2,
			0, 5 * sec, 10 * sec,
		},
		{
			"nothing is drawn before the first attempt",
			pawl.Fixed(10 * sec).Jitter(1), 1,
			0, 0, 0,
		},
		{
			"the default: 500ms x 2, full jitter",
			pawl.DefaultStrategy(), 4,
			0, 1 * sec, 2 * sec,
		},
		{
			"the default: at most 30s",
			pawl.DefaultStrategy(), 50,
			0, 15 * sec, 30 * sec,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.NoError(t, test.strategy.Err())
			require.Equal(t, test.low, test.strategy.Before(test.attempt, 0), "random = 0")
			require.Equal(t, test.middle, test.strategy.Before(test.attempt, 0.5), "random = 0.5")

			// The last nanosecond is a matter of rounding, but never above the bound.
			upper := test.strategy.Before(test.attempt, almostOne)
			require.LessOrEqual(t, upper, test.upper, "random near 1")
			require.GreaterOrEqual(t, upper, test.upper-1, "random near 1")
		})
	}
}
