package driver_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/driver"
)

// Rule: queues get turns by their weights, also when one of them comes back after a long time.
func TestTurnsByWeight(t *testing.T) {
	ts := driver.NewTurns()
	weights := map[string]int{"a": 1, "b": 3, "c": 1}
	give := func(queues ...string) string {
		next := slices.MinFunc(queues, func(a, b string) int {
			switch {
			case ts.Before(a, b):
				return -1
			case ts.Before(b, a):
				return 1
			}
			return 0
		})
		ts.Take(next, weights[next], ts.Credit(next))
		return next
	}
	for range 1000 {
		give("a", "b")
	}
	given := make(map[string]int)
	before := ts.Clone()
	for range 500 {
		given[give("a", "b", "c")]++
	}
	require.InDelta(t, 100, given["a"], 1)
	require.InDelta(t, 300, given["b"], 2)
	require.InDelta(t, 100, given["c"], 1, "an idle queue has gained nothing")
	ts = before
	require.Equal(t, "c", give("a", "b", "c"), "the turns of a clone are not those of its original")
}

// Rule: retries get their share of the turns of a queue, whatever happens to the others.
func TestTurnsOfRetries(t *testing.T) {
	ts := driver.NewTurns()
	retries := 0
	for range 1000 {
		retry, credit := ts.Retry("a", 0.1)
		if retry {
			retries++
		}
		ts.Take("a", 1, credit)
	}
	require.Equal(t, 100, retries)
}
