package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// deaths adds six dead jobs of two queues, one a minute up to a minute ago, with an old job that
// became dead last, and a job that is not dead.
func deaths(f *file) {
	f.add(pawl.Envelope{Queue: "old"})
	f.goTo(today.Add(-7 * time.Minute))
	for n := range 6 {
		f.goTo(today.Add(-time.Duration(6-n) * time.Minute).Add(-30 * time.Second))
		f.kill(pawl.Envelope{Queue: []string{"b", "a"}[n%2]}, pawl.ReasonPermanent, "no")
	}
	f.pass(5 * time.Second)
	l := f.fetch("old")
	require.NoError(f.t, f.q.Settle(context.Background(), l.Abandon(pawl.ReasonPermanent, nil)))
	f.add(pawl.Envelope{Queue: "a"})
	f.goTo(today)
}

// Rule: dead jobs can be selected and sorted by when they became dead, across all queues.
func TestDeadByDeath(t *testing.T) {
	build(t, deaths)
	for line, want := range map[string]string{
		"dead list":                                    "1 2 4 6 3 5 7",
		"dead list --newest":                           "1 7 6 5 4 3 2",
		"dead list --sort died":                        "2 3 4 5 6 7 1",
		"dead list --sort created --newest":            "7 6 5 4 3 2 1",
		"dead list --died-since 210s --newest":         "1 7 6 5",
		"dead list --died-since 210s --died-until 90s": "6 5",
		"dead list --died-until 210s -q b":             "2 4",
		"job list --died-until 210s":                   "2 4 3",
		"job list --newest":                            "8 7 6 5 4 3 2 1",
		"job list --newest -s dead -n 2":               "1 7",
		"job list --sort died":                         "2 3 4 5 6 7 1",
	} {
		args := append(words("--db app.db"), words(line)...)
		got := jobctl(t, append(args, "-o", "ids")...)
		require.Equal(t, exitOK, got.code, got.stderr)
		var numbers []string
		for text := range strings.Lines(got.stdout) {
			numbers = append(numbers, strings.TrimLeft(strings.TrimSpace(text)[30:], "0"))
		}
		require.Equal(t, want, strings.Join(numbers, " "), line)
	}
	require.Equal(t, exitUsage, jobctl(t, words("--db app.db job list -s ready --sort died")...).code)
	require.Equal(t, exitUsage, jobctl(t, words("--db app.db queue purge a --state ready --died-since 1h -y")...).code)
}

// Rule: changes accept the same filters, and --newest with -n selects the last dead jobs.
func TestChangesByDeath(t *testing.T) {
	build(t, deaths)
	for _, step := range []struct{ line, want string }{
		{"dead retry --died-until 330s", "retried 1"},
		{"dead delete --all --newest -n 1", "deleted 1"},
		{"dead forward --died-since 1h -n 1", "forwarded 1"},
		{"queue purge a --state dead --died-until 210s", "purged 1"},
	} {
		got := jobctl(t, append(words("--db app.db -y"), words(step.line)...)...)
		require.Equal(t, exitOK, got.code, got.stderr)
		require.Equal(t, step.want+", skipped 0\n", got.stdout)
	}
	require.Equal(t, pawl.Ready, look(t, id(2)).State)
	require.Equal(t, "failed_jobs", look(t, id(4)).Queue)
	gone := jobctl(t, words("--db app.db job list -n 0 -o ids")...).stdout
	require.NotContains(t, gone, id(1).String())
	require.NotContains(t, gone, id(3).String())
}
