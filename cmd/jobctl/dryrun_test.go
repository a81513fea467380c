package main

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// heldBack fills a file with dead jobs, some of which must stay dead after a retry: because of
// their deadline, because another job has their unique key, or because one of them takes it
// first.
func heldBack(f *file) {
	rare(f)
	for range 3 {
		f.kill(pawl.Envelope{Queue: "other", UniqueKey: "shared"}, pawl.ReasonPermanent, "no")
	}
	f.kill(pawl.Envelope{Queue: "other"}, pawl.ReasonPermanent, "no")
}

// Rule: a dry run reports for each job what the command would do, with the same exit code.
func TestDryRunSaysWhatARunDoes(t *testing.T) {
	for _, line := range []string{
		"dead retry --all", "dead retry -q other", "job delete --all", "dead forward --all --to-queue other",
		"job cancel -q slow", "queue purge other --state dead",
	} {
		build(t, heldBack)
		var results [2]changeView
		var codes [2]int
		for i, dry := range []string{" --dry-run", " -y"} {
			got := jobctl(t, words("--db app.db -o json "+line+dry)...)
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &results[i]), got.stderr)
			codes[i] = got.code
		}
		require.NotEmpty(t, results[0].Jobs)
		require.Equal(t, results[1].Jobs, results[0].Jobs, line)
		require.Equal(t, results[1].Skipped, results[0].Skipped, line)
		require.Equal(t, codes[1], codes[0], line)
	}
	build(t, heldBack)
	require.Equal(t, "would be retried: 2, skipped: 4; nothing was changed\n", jobctl(t, words("--db app.db dead retry --all --dry-run")...).stdout)
}

// Rule: filters are evaluated when a job is changed: a job that became dead again while the user
// considered the question no longer matches.
func TestFiltersAreJudgedInTheChange(t *testing.T) {
	for _, line := range []string{"dead retry", "dead delete", "dead forward", "dead forward --to-db other.db", "queue purge email --state dead"} {
		build(t, everyState)
		if line == "dead forward --to-db other.db" {
			q, err := bolt.Open("other.db", nil)
			require.NoError(t, err)
			require.NoError(t, q.Close())
		}
		got := asked(t, thinking(func() string {
			ctx := context.Background()
			q, err := bolt.Open("app.db", &bolt.Options{Logger: hclog.NewNullLogger(), Now: func() time.Time { return today }})
			require.NoError(t, err)
			require.NoError(t, q.Retry(ctx, id(1), false))
			require.NoError(t, q.Cancel(ctx, id(1)))
			require.NoError(t, q.Close())
			return "y\n"
		}), append(words("--db app.db "+line), "--older-than", "1h")...)
		require.Equal(t, exitOK, got.code, got.stderr)
		require.Contains(t, got.stdout, "skipped 1\n", line)
		require.Equal(t, pawl.ReasonCancelled, look(t, id(1)).Death.Reason, line)
	}
}

// Rule: a dry run refuses a queue that the command would refuse, with the same exit code: a misspelled one, and one in
// a file that is missing or that is no file.
func TestDryRunRefusesTheQueue(t *testing.T) {
	for _, line := range []string{
		"--db app.db job enqueue k -q emial", "--db none.db job enqueue k", "--db app.db job enqueue --batch -q emial", "--db none.db job enqueue --batch",
		"--db app.db job enqueue --file - -q emial", "--db none.db job enqueue --file -",
		"--db none.db job enqueue k --create-queue",
		"--db app.db dead forward --all -y --to-db other.db --to-queue emial", "--db app.db dead forward --all -y --to-queue emial",
		"--db app.db dead forward --all -y --to-db folder", "--db app.db dead forward -y --to-db other.db --to-queue emial " + id(1).String(),
	} {
		build(t, everyState)
		buildAt(t, "other.db", everyState)
		require.NoError(t, os.Mkdir("folder", 0o700))
		refused := piped(t, `{"kind":"k"}`, words(line)...)
		require.NotEqual(t, exitOK, refused.code, line)
		got := piped(t, `{"kind":"k"}`, append(words(line), "--dry-run")...)
		require.Equal(t, refused.code, got.code, line)
		require.NotEmpty(t, got.stderr, line)
		require.Empty(t, got.stdout, line)
		require.False(t, exists("none.db"))
	}
}
