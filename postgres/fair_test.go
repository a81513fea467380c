package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/postgres"
)

// Rule: a queue that lacks turns of keys refuses to open with them, and names the ability.
func TestLimitsThatAreRefused(t *testing.T) {
	for _, refuse := range []struct {
		l     pawl.Limits
		lacks pawl.Ability
	}{
		{pawl.Limits{Fair: true}, pawl.FairKeys},
	} {
		_, err := postgres.Open(t.Context(), "postgres://127.0.0.1:1/none", &postgres.Options{Limits: map[string]pawl.Limits{"x": refuse.l}})
		require.ErrorIs(t, err, pawl.ErrUnsupported)
		var refused *pawl.InvalidError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, refuse.lacks, refused.Lacks)
		require.ErrorContains(t, err, `limits of queue "x"`)
	}
}
