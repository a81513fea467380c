package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: the question repeats every filter, in words.
func TestQuestionRepeatsTheFilters(t *testing.T) {
	build(t, everyState)
	got := asked(t, strings.NewReader("n\n"), "--db", "app.db", "dead", "retry", "-q", "email", "--error", "timeout",
		"--payload", "to~ada", "--reason", "exhausted", "--since", "2026-03-01", "--until", "1s", "--older-than", "1m")
	require.Equal(t, outcomeOf{exitError, "", `1 job matches (queue=email state=dead error~"timeout" payload to~ada reason=exhausted made since 2026-03-01T00:00:00Z made before 2026-03-01T12:00:03Z unchanged since 2026-03-01T11:59:04Z).
Retry it? Type y: error: not confirmed, nothing was changed
`}, got)
}

// Rule: a list that ends with its last job says nothing of more, and a page of it can be gone
// on from, whatever the filter.
func TestPagesOfAList(t *testing.T) {
	build(t, many(130))
	first := jobctl(t, words("--db app.db dead list -n 100 -o ids")...)
	require.Equal(t, 100, strings.Count(first.stdout, "\n"))
	_, rest, _ := strings.Cut(first.stderr, "--after ")
	cursor, _, _ := strings.Cut(rest, " ")
	second := jobctl(t, "--db", "app.db", "dead", "list", "-o", "ids", "--after", cursor)
	require.Equal(t, exitOK, second.code)
	require.Empty(t, second.stderr)
	require.Equal(t, jobctl(t, words("--db app.db dead list -n 0 -o ids")...).stdout, first.stdout+second.stdout)
	require.Empty(t, jobctl(t, words("--db app.db dead list -n 130 -o ids")...).stderr)
}

// Rule: more jobs than one portion has are changed all, and -n bounds them.
func TestChangeInPortions(t *testing.T) {
	build(t, many(2100))
	got := jobctl(t, words("--db app.db dead retry --all -y -n 1500 -o json")...)
	require.Equal(t, exitOK, got.code)
	require.Contains(t, got.stdout, "\"retried\": 1500,\n  \"skipped\": 0,\n  \"dry_run\": false,")
	require.Equal(t, outcomeOf{0, "deleted 600, skipped 0\n", ""}, jobctl(t, words("--db app.db dead delete --all -y")...))
	require.Contains(t, jobctl(t, words("--db app.db stats -o jsonl")...).stdout, `"ready":1500,"delayed":0,"parked":0,"leased":0,"dead":0`)
}
