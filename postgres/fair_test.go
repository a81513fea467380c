package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/postgres"
)

// Rule: a queue that has no turns of keys refuses to open with them, and names the ability.
func TestFairIsRefused(t *testing.T) {
	_, err := postgres.Open(t.Context(), "postgres://127.0.0.1:1/none", &postgres.Options{
		Limits: map[string]pawl.Limits{"x": {Fair: true}}})
	require.ErrorIs(t, err, pawl.ErrUnsupported)
	var refused *pawl.InvalidError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, pawl.FairKeys, refused.Lacks)
	require.ErrorContains(t, err, `limits of queue "x"`)
}
