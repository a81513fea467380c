package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: job show accepts a shortened ID, as top shows it, if exactly one job has it; for several
// jobs the error lists them.
func TestShortIDs(t *testing.T) {
	build(t, everyState)
	for _, short := range []string{"…00000003", "...00000003", "00000003", "8000-000000000003", "8000000000000003"} {
		got := jobctl(t, "--db", "app.db", "-o", "ids", "job", "show", short)
		require.Equal(t, outcomeOf{exitOK, id(3).String() + "\n", ""}, got, short)
	}
	got := jobctl(t, "--db", "app.db", "job", "show", "019caa00")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, `6 jobs have an ID that begins or ends with "019caa00"; give more of it:`)
	for n := 1; n <= 6; n++ {
		require.Contains(t, got.stderr, "  "+id(n).String())
	}
	require.Empty(t, got.stdout)
	got = jobctl(t, "--db", "app.db", "job", "show", "ffffffff")
	require.Equal(t, exitNoMatch, got.code)
	for _, wrong := range []string{"17", "x0000001", "…", ""} {
		require.Equal(t, exitUsage, jobctl(t, "--db", "app.db", "job", "show", wrong).code, wrong)
	}
}
