package pawl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: every state has a count of its own.
func TestCountsOf(t *testing.T) {
	var c pawl.Counts
	for i, state := range pawl.States() {
		*c.Of(state) = i + 1
	}
	require.Equal(t, pawl.Counts{Ready: 1, Delayed: 2, Parked: 3, Leased: 4, Dead: 5, Completed: 6}, c)
	require.Nil(t, c.Of("dancing"))
	require.Nil(t, c.Of(""))

	c.Add(pawl.Counts{Ready: 10, Completed: 20})
	c.Add(c)
	require.Equal(t, pawl.Counts{Ready: 22, Delayed: 4, Parked: 6, Leased: 8, Dead: 10, Completed: 52}, c)
}
