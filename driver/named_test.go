package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Rule: the operations of a mutation name each job, and each unique key to take, once. The jobs of one operation may
// share them.
func TestNamedTwice(t *testing.T) {
	var n driver.Named
	a, b := pawl.ID{1}, pawl.ID{2}
	require.NoError(t, n.Add([]pawl.ID{a, a}, []string{"k", "k"}))
	require.ErrorContains(t, n.Add([]pawl.ID{a}, nil), "twice")
	require.ErrorContains(t, n.Add([]pawl.ID{b}, []string{"k"}), "takes a unique key twice")
	require.NoError(t, n.Add([]pawl.ID{b}, []string{"other"}), "what was refused is not named")
}
