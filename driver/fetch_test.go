package driver_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

func TestRequestDefaults(t *testing.T) {
	r, err := driver.CheckRequest(pawl.Request{Max: 1})
	require.NoError(t, err)
	require.Equal(t, pawl.Request{Queues: []string{pawl.DefaultQueue}, Max: 1}, r)
	require.Equal(t, 1, driver.Weight(&r, pawl.DefaultQueue))
	require.Equal(t, 1, driver.Weight(&r, "any"))
}

func TestRequestIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		field string
		spoil func(*pawl.Request)
	}{
		"no jobs":                  {"Max", func(r *pawl.Request) { r.Max = 0 }},
		"less than no jobs":        {"Max", func(r *pawl.Request) { r.Max = math.MinInt }},
		"negative ahead":           {"Ahead", func(r *pawl.Request) { r.Ahead = -1 }},
		"negative share":           {"RetryShare", func(r *pawl.Request) { r.RetryShare = -0.1 }},
		"share above 1":            {"RetryShare", func(r *pawl.Request) { r.RetryShare = 1.1 }},
		"share that is no number":  {"RetryShare", func(r *pawl.Request) { r.RetryShare = math.NaN() }},
		"infinite share":           {"RetryShare", func(r *pawl.Request) { r.RetryShare = math.Inf(1) }},
		"queue without a name":     {"queue", func(r *pawl.Request) { r.Queues = []string{"a", ""} }},
		"queue with a long name":   {"queue", func(r *pawl.Request) { r.Queues = []string{strings.Repeat("q", 256)} }},
		"weight 0":                 {"weight", func(r *pawl.Request) { r.Weights["a"] = 0 }},
		"negative weight":          {"weight", func(r *pawl.Request) { r.Weights["a"] = -1 }},
		"weight 1001":              {"weight", func(r *pawl.Request) { r.Weights["a"] = 1001 }},
		"weight of no queue asked": {"weight", func(r *pawl.Request) { r.Weights["other"] = 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			r := pawl.Request{Queues: []string{"a"}, Weights: map[string]int{"b": 2}, Max: 1}
			_, err := driver.CheckRequest(r)
			require.NoError(t, err, "it is the change below that counts")
			test.spoil(&r)
			_, err = driver.CheckRequest(r)
			var invalid *pawl.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, test.field, invalid.Field)
		})
	}
}

func TestRequestAtTheLimits(t *testing.T) {
	r, err := driver.CheckRequest(pawl.Request{
		Queues: []string{"a", "b"}, Weights: map[string]int{"a": pawl.MaxWeight, "b": 1},
		Max: math.MaxInt, Ahead: math.MaxInt, RetryShare: 1, Wait: pawl.WaitFinished,
	})
	require.NoError(t, err)
	require.Equal(t, pawl.MaxWeight, driver.Weight(&r, "a"))
	require.Equal(t, 1, driver.Weight(&r, "b"))
	require.Equal(t, 1, driver.Weight(&r, "c"))
	require.Equal(t, float64(1), r.RetryShare)
	require.Equal(t, pawl.WaitFinished, r.Wait)
}

// Rule: a fetch that waits is not changed by what its caller does meanwhile.
func TestCheckedRequestSharesNothing(t *testing.T) {
	r := pawl.Request{Queues: []string{"a"}, Weights: map[string]int{"a": 2}, Max: 1}
	checked, err := driver.CheckRequest(r)
	require.NoError(t, err)
	r.Queues[0] = "b"
	r.Weights["a"] = 0
	require.Equal(t, []string{"a"}, checked.Queues)
	require.Equal(t, 2, driver.Weight(&checked, "a"))
}
