package faults

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// Rule: a result and its ack are one, whichever write a kill interrupts.
func TestResults(t *testing.T) {
	if why := missingSupervision(); why != "" {
		t.Skip(why)
	}
	all, err := killsAtWrites(t.Context(), resultScript)
	require.NoError(t, err)
	require.Greater(t, len(all), killsOfResults/2)
	require.LessOrEqual(t, len(all), killsOfResults, "the family asks for all of them")
	tryFamily(t, &harness.Family{Name: "results", Prepare: harness.Each(func(t *harness.Try) error {
		return faulty(t, resultScript, pick(all, t.Seed))
	})}, 12)
}
