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

// overshoot lets random jobs of several keys and costs arrive, and starts each if start lets it start. It
// returns the largest number of starts in any period, beyond what the rate allows. A job counts as often as its
// cost says.
func overshoot(seed uint64, r pawl.Rate, n int, start func(key int, now time.Time, cost int) bool) (most int) {
	random := rand.New(rand.NewPCG(seed, 1))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type started struct {
		at   time.Time
		cost int
	}
	starts := make(map[int][]started)
	for range n {
		switch random.IntN(20) {
		case 0:
			now = now.Add(time.Duration(random.Int64N(int64(2 * r.Per)))) // a pause
		case 1, 2, 3, 4, 5, 6:
			now = now.Add(time.Duration(random.Int64N(int64(r.Per)/int64(r.Starts) + 1)))
		}
		key, cost := random.IntN(3), 1
		if random.IntN(2) == 0 {
			cost += random.IntN(max(1, r.MaxCost))
		}
		if !start(key, now, cost) {
			continue
		}
		all := append(starts[key], started{now, cost})
		starts[key] = all
		inPeriod := 0
		for i := len(all) - 1; i >= 0 && all[i].at.After(now.Add(-r.Per)); i-- {
			inPeriod += all[i].cost
		}
		most = max(most, inPeriod-r.Starts)
	}
	return most
}

var rates = []pawl.Rate{
	{Starts: 1, Per: time.Second}, {Starts: 2, Per: time.Millisecond, Burst: 2}, {Starts: 10, Per: time.Minute},
	{Starts: 10, Per: time.Second, Burst: 5}, {Starts: 10, Per: time.Hour, Burst: 10}, {Starts: 100, Per: 7 * time.Second, Burst: 20},
	{Starts: 10, Per: time.Minute, MaxCost: 4}, {Starts: 10, Per: time.Second, Burst: 3, MaxCost: 8}, {Starts: 10, Per: time.Hour, MaxCost: 10},
	{Starts: 100, Per: 7 * time.Second, Burst: 20, MaxCost: 15},
}

// Rule: no period of length Per has more than Starts starts, whenever jobs arrive, and whatever they cost.
func TestNoPeriodHasTooManyStarts(t *testing.T) {
	n := *arrivals
	if os.Getenv("PAWL_SLOW_TESTS") != "" {
		n = 1_000_000
	}
	for i, r := range rates {
		t.Run(fmt.Sprintf("%d of %d per %v up to %d", r.Burst, r.Starts, r.Per, r.MaxCost), func(t *testing.T) {
			p := driver.PaceOf(r)
			tats := make(map[int]time.Time)
			most := overshoot(uint64(i), r, n/len(rates), func(key int, now time.Time, cost int) bool {
				left := p.Left(tats[key], now)
				require.LessOrEqual(t, left, p.Most())
				if left == 0 {
					require.True(t, p.When(tats[key], 1).After(now), "the time of the next start")
					return false
				}
				tats[key] = p.Start(tats[key], now, cost)
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
	most := overshoot(1, r, 10_000, func(key int, now time.Time, _ int) bool {
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

// Rule: a job of a higher cost than its rate takes counts as one of the highest cost, so that its TAT is not
// taken for one of a clock that was set back.
func TestACostBeyondTheRate(t *testing.T) {
	p := driver.PaceOf(pawl.Rate{Starts: 10, Per: time.Second, Burst: 2, MaxCost: 3})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	require.Equal(t, []int{1, 1, 3, 3}, []int{p.Units(0), p.Units(1), p.Units(3), p.Units(900)})
	tat := p.Start(p.Start(time.Time{}, now, 1), now, 900)
	require.Equal(t, p.Last(now), tat)
	require.ErrorIs(t, driver.CheckCost(pawl.Limits{Rate: pawl.Rate{Starts: 10, Per: time.Second}}, &pawl.Envelope{Cost: 2}), pawl.ErrInvalid)
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
