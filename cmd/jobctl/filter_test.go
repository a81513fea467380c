package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/group"
)

// Rule: a repeated filter selects what any of its values selects. No value is dropped.
func TestRepeatedFiltersAddUp(t *testing.T) {
	build(t, func(f *file) {
		everyState(f) // 1 and 4 to 6 in email, 2 and 3 in reports
		f.add(pawl.Envelope{Queue: "other", Kind: "other"})
	})
	for line, want := range map[string][]int{
		"job list -q email -q reports":                                  {1, 2, 3, 4, 5, 6},
		"job list -q email -q other -s ready -s delayed":                {5, 6, 7},
		"job list -k report.build -k other":                             {2, 7},
		"job list -s delayed -s leased":                                 {3, 4, 5},
		"dead list --reason exhausted --reason permanent":               {1, 2},
		"dead list -q reports -q other":                                 {2},
		"job cancel -s ready -s delayed -q email -q other -y --dry-run": {5, 6, 7},
		"dead retry --reason permanent --reason poison -y --dry-run":    {2},
	} {
		got := jobctl(t, words("--db app.db -o ids "+line)...)
		require.Equal(t, exitOK, got.code, "%s: %s", line, got.stderr)
		ids := []string{}
		for _, n := range want {
			ids = append(ids, id(n).String())
		}
		require.ElementsMatch(t, ids, strings.Fields(got.stdout), line)
	}
	got := jobctl(t, words("--db app.db job cancel -q email -q other -s ready -s delayed --dry-run")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	got = asked(t, strings.NewReader("n\n"), words("--db app.db job cancel -q email -q other -s ready -s delayed")...)
	require.Contains(t, got.stderr, "3 jobs match (queue=email|other state=ready|delayed)")
}

// Rule: --group selects the members of a group, for a list and for a change, whatever their states.
func TestGroupSelectsMembers(t *testing.T) {
	build(t, func(f *file) {
		for _, name := range []string{"import/7", "import/8"} {
			require.NoError(t, group.Make(t.Context(), f.q, group.Group{Name: name}))
		}
		f.add(pawl.Envelope{Queue: "email", Group: "import/7"})
		f.add(pawl.Envelope{Queue: "email", Group: "import/8"})
		f.add(pawl.Envelope{Queue: "reports", Group: "import/7", Delay: time.Hour})
		f.add(pawl.Envelope{Queue: "reports"})
	})
	got := jobctl(t, words("--db app.db -o ids job list --group import/7")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	require.ElementsMatch(t, []string{id(1).String(), id(3).String()}, strings.Fields(got.stdout))
	got = jobctl(t, words("--db app.db -o ids job cancel --group import/7 -y")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	require.ElementsMatch(t, []string{id(1).String(), id(3).String()}, strings.Fields(got.stdout))
}

// Rule: a flag that does not collect its values must not be given twice, since one value would
// be dropped.
func TestFlagGivenTwiceIsRefused(t *testing.T) {
	build(t, everyState)
	for _, line := range []string{
		"job list -n 1 -n 2", "dead list --error a --error b", "job list --since 1h --since 2h", "dead retry --older-than 1h --older-than 2h",
		"wf list --flow a --flow b", "wf list -s done -s failed", "job enqueue k -q a -q b", "queue purge email -s dead -s ready", "stats --watch 1s --watch 2s",
	} {
		got := jobctl(t, words("--db app.db "+line)...)
		require.Equal(t, exitUsage, got.code, line)
		require.Contains(t, got.stderr, "it was given twice; give it once", line)
	}
	got := jobctl(t, words("--db nowhere.db --db app.db -o ids -o table stats")...) // as an alias leads to it
	require.Equal(t, exitOK, got.code, got.stderr)
}
