package metrics_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/metrics"
)

func TestTally(t *testing.T) {
	var tally metrics.Tally
	empty := tally.Snapshot()
	require.Zero(t, empty.Total("a"))
	require.Zero(t, empty.Distribution("d"))

	here, there := metrics.Labels{Queue: "q", Kind: "k"}, metrics.Labels{Queue: "q", Kind: "other"}
	tally.Increment("a", here)
	tally.Increment("a", here)
	tally.Increment("a", there)
	tally.Increment("b", here)
	for _, value := range []float64{3, -1, 7} {
		tally.Observe("d", here, value)
	}
	tally.Observe("d", there, 8)

	s := tally.Snapshot()
	require.Equal(t, map[metrics.Figure]int64{{Name: "a", Labels: here}: 2, {Name: "a", Labels: there}: 1, {Name: "b", Labels: here}: 1}, s.Counts)
	require.Equal(t, metrics.Distribution{Count: 3, Sum: 9, Min: -1, Max: 7}, s.Distributions[metrics.Figure{Name: "d", Labels: here}])
	require.Equal(t, int64(3), s.Total("a"))
	require.Equal(t, int64(1), s.Total("b"))
	require.Zero(t, s.Total("c"))
	require.Equal(t, metrics.Distribution{Count: 4, Sum: 17, Min: -1, Max: 8}, s.Distribution("d"))
	require.Zero(t, s.Distribution("a"), "a counter is no distribution")

	tally.Increment("b", here)
	tally.Observe("d", here, 100)
	require.Equal(t, int64(1), s.Total("b"), "a snapshot is of its moment")
	require.Equal(t, float64(8), s.Distribution("d").Max)
}

// Rule: the first value is the least and the greatest, also when all are positive.
func TestDistributionOfOneValue(t *testing.T) {
	var tally metrics.Tally
	tally.Observe("d", metrics.Labels{}, 5)
	require.Equal(t, metrics.Distribution{Count: 1, Sum: 5, Min: 5, Max: 5}, tally.Snapshot().Distribution("d"))
}

func TestTallyOfManyGoroutines(t *testing.T) {
	var tally metrics.Tally
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				tally.Increment("a", metrics.Labels{})
				tally.Observe("d", metrics.Labels{}, 1)
				tally.Snapshot()
			}
		})
	}
	all.Wait()
	s := tally.Snapshot()
	require.Equal(t, int64(8000), s.Total("a"))
	require.Equal(t, metrics.Distribution{Count: 8000, Sum: 8000, Min: 1, Max: 1}, s.Distribution("d"))
}

func TestDiscardDropsEverything(t *testing.T) {
	var c metrics.Collector = metrics.Discard{}
	c.Increment("a", metrics.Labels{})
	c.Observe("d", metrics.Labels{}, 1)
}
