package main

import (
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
