package faults

import (
	"testing"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// Rule: exactly those jobs wait whose prerequisites are not met, and the others run, whichever write a kill interrupts.
func TestPrerequisites(t *testing.T) {
	if why := missingSupervision(); why != "" {
		t.Skip(why)
	}
	tryFamily(t, &harness.Family{Name: "prerequisites", Prepare: Prerequisites.Prepare}, 4)
}
