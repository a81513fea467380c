package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/group"
)

// jobGroups fills a file with two groups: import/7, which is open, with a member and both callbacks, and
// none, which has ended.
func jobGroups(f *file) {
	ctx := context.Background()
	require.NoError(f.t, group.Make(ctx, f.q, group.Group{
		Name: "import/7", Done: &pawl.Envelope{ID: id(901), Kind: "report"}, Success: &pawl.Envelope{ID: id(902), Kind: "publish"},
	}))
	f.add(pawl.Envelope{Kind: "greet", Group: "import/7"})
	require.NoError(f.t, group.Make(ctx, f.q, group.Group{Name: "none"}))
	require.NoError(f.t, group.Close(ctx, f.q, "none"))
}

// printingGroups lists command lines that print every field, with the file of jobGroups.
var printingGroups = []string{"group list", "group show import/7", "group close none", "group cancel none", "job show JOB1"}

// Rule: the error for a group that does not exist speaks of a group, and not of a job.
func TestNoSuchGroup(t *testing.T) {
	build(t, jobGroups)
	for _, verb := range []string{"show", "close", "cancel"} {
		want := outcomeOf{exitNoMatch, "", "error: group \"other\": no such group\n  'jobctl group list' shows the groups.\n"}
		require.Equal(t, want, jobctl(t, "--db", "app.db", "group", verb, "other"))
	}
}
