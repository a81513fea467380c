package pawl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// able is a queue that declares some abilities.
type able struct {
	pawl.Queue
	has pawl.Ability
}

func (q able) Abilities() pawl.Ability { return q.has }

// Rule: Require refuses a queue that lacks an ability, and names exactly what it lacks. A queue
// that declares nothing lacks everything.
func TestRequire(t *testing.T) {
	some := able{has: pawl.UniqueKeys | pawl.Synced}
	require.NoError(t, pawl.Require(some, pawl.UniqueKeys))
	require.NoError(t, pawl.Require(some, pawl.UniqueKeys|pawl.Synced))
	require.NoError(t, pawl.Require(some, 0))

	err := pawl.Require(some, pawl.UniqueKeys|pawl.Deadlines|pawl.Shared)
	require.ErrorIs(t, err, pawl.ErrUnsupported)
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.EqualError(t, err, "invalid queue: it lacks deadlines, shared use, which the program requires")
	var refused *pawl.InvalidError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, pawl.Deadlines|pawl.Shared, refused.Lacks)

	wrapped := struct{ pawl.Queue }{some} // which hides the method
	err = pawl.Require(wrapped, pawl.UniqueKeys)
	require.ErrorIs(t, err, pawl.ErrUnsupported)
	require.EqualError(t, err, "invalid queue: it declares no abilities, and the program requires unique keys; a type that wraps a queue needs a method Abilities")
	require.NotErrorIs(t, &pawl.InvalidError{Field: "kind"}, pawl.ErrUnsupported)
}

// Rule: each ability has a name of its own.
func TestAbilityNames(t *testing.T) {
	names := make(map[string]bool)
	for a := pawl.UniqueKeys; a <= pawl.SharedPools; a <<= 1 {
		require.NotEmpty(t, a.String())
		names[a.String()] = true
	}
	require.Len(t, names, 18)
	require.Empty(t, (pawl.SharedPools << 1).String())
}
