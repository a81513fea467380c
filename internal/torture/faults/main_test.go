package faults

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/torture/harness"
)

func TestMain(m *testing.M) {
	harness.Main()
	os.Exit(m.Run())
}

// tryFamily runs a few tries of a family, and requires that it finds nothing.
func tryFamily(t *testing.T, f *harness.Family, goal int) {
	t.Helper()
	r := f.Run(t.Context(), harness.Plan{Goal: goal, Seed: 1})
	if r.Missing != "" {
		t.Skip(r.Missing)
	}
	for _, v := range r.First {
		t.Errorf("seed %d: %v", v.Seed, v.Err)
	}
	require.GreaterOrEqual(t, r.Tried, goal)
}
