package faults

import (
	"testing"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// Rule: the counts of a group equal a walk, each callback is enqueued once, and its handler takes effect once,
// whichever transition a kill interrupts.
func TestGroups(t *testing.T) {
	if why := missingSupervision(); why != "" {
		t.Skip(why)
	}
	tryFamily(t, &harness.Family{Name: "groups", Prepare: harness.Each(func(t *harness.Try) error {
		return killGroup(t, 25)
	})}, 30)
}
