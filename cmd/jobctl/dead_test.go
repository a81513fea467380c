package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Dead jobs are listed with their reason and the first line of their last error.
func TestDeadList(t *testing.T) {
	build(t, everyState)
	require.Equal(t, outcomeOf{0, `ID                                    QUEUE    KIND          REASON     RUNS  DIED    LAST ERROR
019caa00-0000-7000-8000-000000000001  email    mail.send     exhausted   2/2  2h ago  timeout …
019caa00-0000-7000-8000-000000000002  reports  report.build  permanent   1/4  2h ago  no such report: 17
`, ""}, jobctl(t, "--db", "app.db", "dead", "list"))
}

// Filters and the limit apply to dead jobs; other jobs are never listed.
func TestDeadListFilters(t *testing.T) {
	build(t, everyState)
	for flags, want := range map[string][]pawl.ID{
		"-q email":                 {id(1)},
		"-k report.build":          {id(2)},
		"--kind report.old":        nil,
		"-q email -k report.build": nil,
		"-n 1":                     {id(1)},
		"-n 0":                     {id(1), id(2)},
	} {
		got := jobctl(t, append(words("--db app.db dead list"), words(flags)...)...)
		require.Equal(t, exitOK, got.code)
		for n := range 6 {
			if slices.Contains(want, id(n+1)) {
				require.Contains(t, got.stdout, id(n+1).String(), flags)
			} else {
				require.NotContains(t, got.stdout, id(n+1).String(), flags)
			}
		}
	}
}

// Programs get the same object from dead list as from job list.
func TestDeadListAsJSON(t *testing.T) {
	build(t, everyState)
	require.Equal(t,
		jobctl(t, "--db", "app.db", "job", "list", "-s", "dead", "-o", "json"),
		jobctl(t, "--db", "app.db", "dead", "list", "-o", "json"))
}

// An unreadable dead job is named, and the others are listed.
func TestDeadListWithDamage(t *testing.T) {
	build(t, everyState)
	spoil(t, "app.db", id(1))
	got := jobctl(t, "--db", "app.db", "dead", "list")
	require.Equal(t, exitDamaged, got.code)
	require.Contains(t, got.stdout, id(2).String())
	require.Contains(t, got.stderr, id(1).String())
}
