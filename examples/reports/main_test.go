package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// at starts the program at a time, and returns what it prints.
func at(t *testing.T, path, now string) string {
	t.Helper()
	var out, errs bytes.Buffer
	require.Zero(t, command(t.Context(), []string{"-db", path, "-at", now}, &out, &errs), errs.String())
	return out.String()
}

// Rule: whenever the program is started, its reports are those of the schedules: one on the day on which
// the clock skips their hour, the latest of those that were missed, and none twice.
func TestOddTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.db")
	require.NotContains(t, at(t, path, "2026-03-27T12:00:00Z"), "daily report") // it begins now
	weekend := at(t, path, "2026-03-30T12:00:00Z")
	for _, want := range []string{
		"daily report of 2026-03-28 01:30 UTC, after 0 that were missed",
		"daily report of 2026-03-29 01:00 UTC, after 0 that were missed", // at 03:00, when the gap ends
		"daily report of 2026-03-30 00:30 UTC, after 0 that were missed",
		"prices of 2026-03-30 06:00 UTC, after 0 that were missed",
		"settled the account of Ada in run new-york/2026-03-27T22:00:00Z",
		"berlin: at 02:30, time zone Europe/Berlin; next Tue, 31 Mar 2026 02:30:00 CEST",
		"fired   Sun, 29 Mar 2026 03:00:00 CEST",
	} {
		require.Contains(t, weekend, want)
	}
	again := at(t, path, "2026-03-30T13:00:00Z")
	require.NotContains(t, again, "that were missed")
	later := at(t, path, "2026-04-20T12:00:00Z")
	require.Contains(t, later, "daily report of 2026-04-14 00:30 UTC, after 14 that were missed")
	require.Contains(t, later, "prices of 2026-04-20 06:00 UTC, after 14 that were missed")
	require.Contains(t, later, "missed  Tue, 31 Mar 2026 02:30:00 CEST to Mon, 13 Apr 2026 02:30:00 CEST")
}

// Rule: a wrong time is refused.
func TestUsage(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, 2, command(t.Context(), []string{"-at", "noon"}, &out, &errs))
}
