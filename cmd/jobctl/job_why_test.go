package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: job why and key list say when the rate of a key lets its next job start.
func TestKeyAtItsRate(t *testing.T) {
	t.Chdir(t.TempDir())
	buildAt(t, "app.db", keyed)
	why := jobctl(t, words("--db app.db job why 019caa00-0000-7000-8000-000000000002")...)
	require.Contains(t, why.stdout, `the rate of key "a" lets its next job start at 2026-03-01T12:59:04Z`)
	require.Regexp(t, `(?m)^a +1 +2 +2 +in 59m00s$`, jobctl(t, words("--db app.db key list sync")...).stdout)
	require.Contains(t, jobctl(t, words("--db app.db key show sync a")...).stdout, "\nnext        2026-03-01T12:59:04.000Z  (in 59m00s)\n")
}

// Rule: job why of a run says what the run waits for, as wf show does, and not that its job is delayed.
func TestWhyARunWaits(t *testing.T) {
	t.Chdir(t.TempDir())
	buildAt(t, "app.db", workflows)
	for run, waits := range map[string]string{
		"nap:1":        "  bed until ",
		"order:1":      "  signal approved until ",
		"order:paused": "  'jobctl wf resume'\n",
		"shift:2":      "  a matching build of the app",
	} {
		id := strings.TrimSpace(jobctl(t, words("--db app.db wf show "+run+" -o ids")...).stdout)
		why := strings.TrimSuffix(jobctl(t, words("--db app.db job why "+id)...).stdout, "no process has the queue open\n")
		require.Contains(t, why, "waits for\n"+waits)
		require.NotContains(t, why, "delayed")
		require.Contains(t, jobctl(t, words("--db app.db wf show "+run)...).stdout, why)
	}
}
