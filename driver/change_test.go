package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Rule: every state has a count of its own.
func TestCountsOf(t *testing.T) {
	var c pawl.Counts
	for i, state := range pawl.States() {
		*driver.CountOf(&c, state) = i + 1
	}
	require.Equal(t, pawl.Counts{Ready: 1, Delayed: 2, Leased: 3, Dead: 4, Completed: 5}, c)
	require.Nil(t, driver.CountOf(&c, "dancing"))
	require.Nil(t, driver.CountOf(&c, ""))

	driver.AddCounts(&c, pawl.Counts{Ready: 10, Completed: 20})
	driver.AddCounts(&c, c)
	require.Equal(t, pawl.Counts{Ready: 22, Delayed: 4, Leased: 6, Dead: 8, Completed: 50}, c)
}
