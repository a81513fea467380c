package driver_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

var arrivals = flag.Int("arrivals", 50_000, "random arrivals of the property test of rates; 1000000 with PAWL_SLOW_TESTS")

// overshoot lets random jobs of several keys arrive, and starts each at the first time at which allow
// lets it start. It returns the largest number of starts in any period, beyond what the rate allows.
func overshoot(seed uint64, r pawl.Rate, n int, start func(key int, now time.Time) bool) (most int) {
	random := rand.New(rand.NewPCG(seed, 1))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	starts := make(map[int][]time.Time)
	for range n {
		switch random.IntN(20) {
		case 0:
			now = now.Add(time.Duration(random.Int64N(int64(2 * r.Per)))) // a pause
		case 1, 2, 3, 4, 5, 6:
			now = now.Add(time.Duration(random.Int64N(int64(r.Per)/int64(r.Starts) + 1)))
		}
		key := random.IntN(3)
		if !start(key, now) {
			continue
		}
		all := append(starts[key], now)
		starts[key] = all
		inPeriod := 0
		for i := len(all) - 1; i >= 0 && all[i].After(now.Add(-r.Per)); i-- {
			inPeriod++
		}
		most = max(most, inPeriod-r.Starts)
	}
	return most
}

var rates = []pawl.Rate{
	{Starts: 1, Per: time.Second}, {Starts: 2, Per: time.Millisecond, Burst: 2}, {Starts: 10, Per: time.Minute},
	{Starts: 10, Per: time.Second, Burst: 5}, {Starts: 10, Per: time.Hour, Burst: 10}, {Starts: 100, Per: 7 * time.Second, Burst: 20},
}

// Rule: no period of length Per has more than Starts starts, whenever jobs arrive.
func TestNoPeriodHasTooManyStarts(t *testing.T) {
	n := *arrivals
	if os.Getenv("PAWL_SLOW_TESTS") != "" {
		n = 1_000_000
	}
	for i, r := range rates {
		t.Run(fmt.Sprintf("%d of %d per %v", r.Burst, r.Starts, r.Per), func(t *testing.T) {
			p := driver.PaceOf(r)
			tats := make(map[int]time.Time)
			most := overshoot(uint64(i), r, n/len(rates), func(key int, now time.Time) bool {
				left := p.Left(tats[key], now)
				require.LessOrEqual(t, left, p.Most())
				if left == 0 {
					require.True(t, p.When(tats[key], 1).After(now), "the time of the next start")
					return false
				}
				tats[key] = p.Start(tats[key], now)
				require.False(t, tats[key].After(p.Last(now)))
				return true
			})
			require.LessOrEqual(t, most, 0)
			if r.Starts > 1 || r.Burst > 0 {
				require.Equal(t, 0, most, "some period has all starts of the rate")
			}
		})
	}
}

// Rule: the property test of rates finds a token bucket, which lets too many jobs start in a period
// that begins with a full bucket.
func TestATokenBucketIsFound(t *testing.T) {
	r := pawl.Rate{Starts: 10, Per: time.Second}
	type bucket struct {
		tokens float64
		at     time.Time
	}
	buckets := make(map[int]bucket)
	most := overshoot(1, r, 10_000, func(key int, now time.Time) bool {
		b, ok := buckets[key]
		if !ok {
			b = bucket{float64(r.Starts), now}
		}
		b.tokens = min(float64(r.Starts), b.tokens+float64(r.Starts)*now.Sub(b.at).Seconds()/r.Per.Seconds())
		b.at = now
		allowed := b.tokens >= 1
		if allowed {
			b.tokens--
		}
		buckets[key] = b
		return allowed
	})
	require.Positive(t, most)
}

// Rule: a TAT after a step of the clock backward never keeps jobs waiting for longer than a burst.
func TestPaceAfterTheClockWasSetBack(t *testing.T) {
	p := driver.PaceOf(pawl.Rate{Starts: 10, Per: time.Second, Burst: 4})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tat := p.Last(now)
	require.Zero(t, p.Left(tat, now))
	require.Zero(t, p.Left(tat, now.Add(-time.Hour)), "a TAT beyond Last")
	require.Equal(t, 1, p.Left(tat, p.When(tat, 1)))
	require.Equal(t, 4, p.Left(tat, p.When(tat, 4)))
	require.Equal(t, 4, p.Left(time.Time{}, now))
}
