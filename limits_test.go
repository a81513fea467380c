package pawl_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Rule: a bound on waiting jobs that makes no sense is refused, with the value.
func TestBoundsThatAreRefused(t *testing.T) {
	for _, n := range []int64{-1, 1 << 31} {
		bad := int(n)
		for field, l := range map[string]pawl.Limits{"MaxWaiting": {MaxWaiting: bad}, "MaxWaitingPerKey": {MaxWaitingPerKey: bad}} {
			err := l.Validate()
			require.ErrorIs(t, err, pawl.ErrInvalid)
			require.ErrorContains(t, err, fmt.Sprintf("%s: %d is not between 1 and 2147483647", field, bad))
		}
	}
	require.NoError(t, pawl.Limits{MaxWaiting: 1<<31 - 1, MaxWaitingPerKey: 1<<31 - 1}.Validate())
}

// Rule: a pool that makes no sense is refused, with what is wrong. An engine without pools refuses each, and names the ability.
func TestPoolsThatAreRefused(t *testing.T) {
	for reason, p := range map[string]pawl.Pool{
		"Running is 2, and the pool has no name":       {Running: 2},
		`Running 0 of pool "p" is not between 1 and`:   {Name: "p"},
		`Running -1 of pool "p" is not between 1 and`:  {Name: "p", Running: -1},
		`Running 1000001 of pool "p" is not between 1`: {Name: "p", Running: pawl.MaxRunning + 1},
		"the name has 129 bytes, and at most 128 are":  {Name: strings.Repeat("p", pawl.MaxPoolName+1), Running: 1},
		`pool: "a\x00b" has a NUL byte`:                {Name: "a\x00b", Running: 1},
	} {
		err := pawl.Limits{Pool: p}.Validate()
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, reason)
	}
	l := pawl.Limits{Pool: pawl.Pool{Name: strings.Repeat("p", pawl.MaxPoolName), Running: pawl.MaxRunning}}
	require.NoError(t, l.Validate())
	require.NoError(t, driver.SupportsLimits(pawl.SharedPools, l))
	err := driver.SupportsLimits(^pawl.SharedPools, l)
	require.ErrorIs(t, err, pawl.ErrUnsupported)
	require.ErrorContains(t, err, "shared pools")
}

// Rule: a rate that makes no sense is refused, with the value.
func TestRatesThatAreRefused(t *testing.T) {
	for reason, r := range map[string]pawl.Rate{
		"Starts 0 is not between 1 and 1000000":      {Per: time.Second},
		"Starts -1 is not between":                   {Starts: -1, Per: time.Second},
		"Starts 1000001 is not between":              {Starts: 1_000_001, Per: time.Second},
		"Per 0s is not between 1ms and 8784h0m0s":    {Starts: 1},
		"Per 999µs is not between":                   {Starts: 1, Per: 999 * time.Microsecond},
		"Per 8784h0m0.000000001s is not between":     {Starts: 1, Per: pawl.MaxPer + 1},
		"Burst -1 is negative":                       {Starts: 1, Per: time.Second, Burst: -1},
		"Burst 200 is more than Starts 100":          {Starts: 100, Per: time.Minute, Burst: 200},
		"MaxCost -1 is not between 1 and 1000":       {Starts: 1, Per: time.Second, MaxCost: -1},
		"MaxCost 1001 is not between":                {Starts: 5000, Per: time.Second, MaxCost: 1001},
		"MaxCost 2 and Burst 1 leave none of 1":      {Starts: 1, Per: time.Second, MaxCost: 2},
		"MaxCost 6 and Burst 6 leave none of 10":     {Starts: 10, Per: time.Second, Burst: 6, MaxCost: 6},
		"Burst 1000 of 1000 starts per 8784h0m0s is": {Starts: 1000, Per: pawl.MaxPer, Burst: 1000},
	} {
		for field, l := range map[string]pawl.Limits{"Rate": {Rate: r}, "RatePerKey": {RatePerKey: r}} {
			err := l.Validate()
			require.ErrorIs(t, err, pawl.ErrInvalid)
			require.ErrorContains(t, err, field+":")
			require.ErrorContains(t, err, reason)
		}
	}
	for _, r := range []pawl.Rate{{}, {Starts: 1, Per: time.Millisecond}, {Starts: pawl.MaxStarts, Per: pawl.MaxPer}, {Starts: 100, Per: time.Minute, Burst: 100}, {Starts: 10, Per: time.Second, Burst: 6, MaxCost: 5},
		{Starts: 1000, Per: time.Second, MaxCost: 1000}} {
		require.NoError(t, pawl.Limits{Rate: r, RatePerKey: r}.Validate())
	}
}

// Rule: a weight is a number from 1 to 10, of a job or of its kind. None means 1. Each of them divides a turn.
func TestWeights(t *testing.T) {
	for _, n := range []int{-1, 0, pawl.MaxTurns + 1} {
		_, err := pawl.Define[int]("k").Envelope(1, pawl.Weight(n))
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, "is not between 1 and 10")
	}
	kind := pawl.Define[int]("k", pawl.Weight(7))
	e, err := kind.Envelope(1)
	require.NoError(t, err)
	require.Equal(t, 7, e.Weight)
	e, err = kind.Envelope(1, pawl.Weight(1))
	require.NoError(t, err)
	driver.Accept(e, time.Now())
	require.Zero(t, e.Weight, "as a queue stores it")
	for n := range pawl.MaxTurns + 1 {
		require.EqualValues(t, driver.FairStep, driver.FairPart(n)*int64(max(1, n)))
	}
}

// Rule: a cost is a number from 1 to 1000, of a job or of its kind. None means 1.
func TestCosts(t *testing.T) {
	for _, n := range []int{-1, 0, pawl.MaxCost + 1} {
		_, err := pawl.Define[int]("k").Envelope(1, pawl.Cost(n))
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, "is not between 1 and 1000")
	}
	kind := pawl.Define[int]("k", pawl.Cost(7))
	e, err := kind.Envelope(1)
	require.NoError(t, err)
	require.Equal(t, 7, e.Cost)
	e, err = kind.Envelope(1, pawl.Cost(1))
	require.NoError(t, err)
	driver.Accept(e, time.Now())
	require.Zero(t, e.Cost, "as a queue stores it")
}
