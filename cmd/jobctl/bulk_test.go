package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// Rule: the question repeats every filter, in words.
func TestQuestionRepeatsTheFilters(t *testing.T) {
	build(t, everyState)
	got := asked(t, strings.NewReader("n\n"), "--db", "app.db", "dead", "retry", "-q", "email", "--error", "timeout",
		"--payload", "to~ada", "--reason", "exhausted", "--since", "2026-03-01", "--until", "1s", "--older-than", "1m")
	require.Equal(t, outcomeOf{exitError, "", `1 job matches (queue=email state=dead error~"timeout" payload to~ada reason=exhausted created since 2026-03-01T00:00:00Z created before 2026-03-01T12:00:03Z unchanged since 2026-03-01T11:59:04Z).
Retry it? Type y: error: not confirmed, nothing was changed
`}, got)
}

// Rule: a list that ends with its last job does not mention more, and any page of a list can be
// continued, whatever the filter.
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

// Rule: a change of more jobs than one portion changes all of them, and -n limits them.
func TestChangeInPortions(t *testing.T) {
	build(t, many(2100))
	got := jobctl(t, words("--db app.db dead retry --all -y -n 1500 -o json")...)
	require.Equal(t, exitOK, got.code)
	require.Contains(t, got.stdout, "\"retried\": 1500,\n  \"skipped\": 0,\n  \"dry_run\": false,")
	require.Equal(t, outcomeOf{0, "deleted 600, skipped 0\n", ""}, jobctl(t, words("--db app.db dead delete --all -y")...))
	require.Contains(t, jobctl(t, words("--db app.db stats -o jsonl")...).stdout, `"ready":1500,"delayed":0,"leased":0,"dead":0`)
}

// Rule: an error that concerns more than one job ends a change; each job of the portion gets the
// error if something may have been done, and none if nothing was.
func TestChangeThatDidNotComeThrough(t *testing.T) {
	for _, c := range []struct {
		err    error
		stdout string
	}{
		{pawl.ErrUnknownOutcome, "retried 0, skipped 2\n"},
		{admin.ErrUnreachable, "retried 0, skipped 2\n"},
		{pawl.ErrClosed, ""},
	} {
		build(t, everyState)
		got := applying(t.Context(), func(context.Context, admin.Admin, how, []pawl.ID) ([]error, error) { return nil, c.err })
		require.NotEqual(t, exitOK, got.code)
		require.Equal(t, c.stdout, got.stdout, c.err)
		require.Contains(t, got.stderr, c.err.Error())
	}
}

// Rule: each filter selects jobs by itself, so that --all is not needed.
func TestEachFilterChooses(t *testing.T) {
	build(t, everyState)
	for _, flags := range []string{
		"-q email", "-k mail.send", "--error timeout", "--payload to~ada", "--reason exhausted", "--since 1d", "--until 1h", "--older-than 1h",
	} {
		got := jobctl(t, append(words("--db app.db dead retry --dry-run"), words(flags)...)...)
		require.Equal(t, exitOK, got.code, "%s: %s", flags, got.stderr)
		require.Contains(t, got.stdout, "would be retried: ", flags)
	}
}

// Rule: a purge removes exactly the jobs of its state, whichever that is.
func TestPurgeOfEachState(t *testing.T) {
	for _, state := range purgeable {
		build(t, func(f *file) {
			everyState(f)
			f.add(pawl.Envelope{Queue: "email", Retain: 24 * time.Hour, Priority: 9})
			require.NoError(f.t, f.q.Settle(context.Background(), f.fetch("email").Ack()))
		})
		queue := "email"
		var before, after queueView
		look := words("--db app.db queue show -o json " + queue)
		require.NoError(t, json.Unmarshal([]byte(jobctl(t, look...).stdout), &before))
		require.Equal(t, exitOK, jobctl(t, words("--db app.db queue purge -y --state "+string(state)+" "+queue)...).code, state)
		require.NoError(t, json.Unmarshal([]byte(jobctl(t, look...).stdout), &after))
		ready := before.Ready + before.Leased // the open has taken the lease back
		want := queueView{Ready: ready, Delayed: before.Delayed, Dead: before.Dead, Completed: before.Completed}
		switch state {
		case pawl.Ready:
			want.Ready = before.Leased // which was not ready when it was chosen
		case pawl.Delayed:
			want.Delayed = 0
		case pawl.Dead:
			want.Dead = 0
		case pawl.Completed:
			want.Completed = 0
		}
		got := queueView{Ready: after.Ready, Delayed: after.Delayed, Dead: after.Dead, Completed: after.Completed}
		require.Equal(t, want, got, state)
	}
}

// Rule: -n limits what filters select, so a change of named jobs or runs refuses it.
func TestLimitOfNamedJobs(t *testing.T) {
	build(t, everyState)
	for _, line := range []string{"dead delete -n 1 " + id(1).String() + " " + id(2).String(), "dead delete -n 1 -", "wf pause -n 1 flow:a flow:b"} {
		got := piped(t, id(1).String(), append(words("--db app.db"), words(line)...)...)
		require.Equal(t, exitUsage, got.code, line)
		require.Contains(t, got.stderr, "-n limits how many the filters select")
	}
	require.Equal(t, pawl.Dead, look(t, id(1)).State)
}
