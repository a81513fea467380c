package faults

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// Rule: no acknowledged cursor and no stored line of a log is lost, whichever write a kill interrupts.
func TestCursors(t *testing.T) {
	if why := missingSupervision(); why != "" {
		t.Skip(why)
	}
	all, err := killsAtWrites(t.Context(), cursorScript)
	require.NoError(t, err)
	t.Logf("%d kills", len(all))
	require.Greater(t, len(all), killsOfCursors/2)
	require.LessOrEqual(t, len(all), killsOfCursors, "the family asks for all of them")
	tryFamily(t, &harness.Family{Name: "cursors", Prepare: harness.Each(func(t *harness.Try) error {
		return killedCursors(t, pick(all, t.Seed))
	})}, 12)
}
