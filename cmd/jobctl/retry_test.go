package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

const orphanNote = "note: 1 leased job whose process had ended: ready again too\n"

// A retried dead job is ready with its history, and its attempts start again.
func TestRetryOne(t *testing.T) {
	build(t, everyState)
	require.Equal(t, outcomeOf{0, "retried 1, skipped 0\n", orphanNote},
		jobctl(t, "--db", "app.db", "dead", "retry", id(1).String()))
	e := look(t, id(1))
	require.Equal(t, pawl.Ready, e.State)
	require.Equal(t, today, e.NotBefore.UTC())
	require.Zero(t, e.Attempts)
	require.Len(t, e.History, 2)
	require.Equal(t, pawl.Dead, look(t, id(2)).State, "others stay dead")
	require.Equal(t, pawl.Ready, look(t, id(4)).State, "a lease whose process is gone is taken back")
}

// With kept attempts, an exhausted job runs once.
func TestRetryKeepsAttempts(t *testing.T) {
	build(t, everyState)
	require.Zero(t, jobctl(t, "--db", "app.db", "dead", "retry", "--keep-attempts", id(1).String()).code)
	require.Equal(t, 2, look(t, id(1)).Attempts)
}

// The exit code distinguishes the reasons why a job cannot be retried, and such a command opens
// the file only for reading.
func TestRetryOfOtherJobs(t *testing.T) {
	build(t, everyState)
	before, err := os.ReadFile("app.db")
	require.NoError(t, err)
	for n, want := range map[int]outcomeOf{
		3: {exitConflict, "", "error: job " + id(3).String() + `: conflict: it is delayed, not dead
  Only a dead job can be retried; 'jobctl job show' has the details.
`},
		99: {exitNoMatch, "", "error: job " + id(99).String() + `: no such job
  It is done, or it never existed; 'jobctl job list' shows the jobs.
`},
	} {
		require.Equal(t, want, jobctl(t, "--db", "app.db", "dead", "retry", id(n).String()))
	}
	after, err := os.ReadFile("app.db")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// Of several IDs, the possible ones are retried, and the first failure decides the exit code.
func TestRetrySeveral(t *testing.T) {
	build(t, everyState)
	got := jobctl(t, "--db", "app.db", "dead", "retry", id(2).String(), id(5).String(), id(99).String(), id(1).String(), id(2).String())
	require.Equal(t, outcomeOf{exitConflict, "retried 2, skipped 2\n", orphanNote + "error: 2 of 4 jobs could not be retried:\n" +
		"  job " + id(5).String() + ": conflict: it is delayed, not dead\n" +
		"  job " + id(99).String() + ": no such job\n"}, got)
	require.Equal(t, pawl.Ready, look(t, id(1)).State)
	require.Equal(t, pawl.Ready, look(t, id(2)).State)
}

// A wrong ID is reported before anything is done to the right ones.
func TestRetryChecksAllIDsFirst(t *testing.T) {
	build(t, everyState)
	require.Equal(t, exitUsage, jobctl(t, "--db", "app.db", "dead", "retry", id(1).String(), "1").code)
	require.Equal(t, pawl.Dead, look(t, id(1)).State)
}

// A dash reads IDs from standard input, in any layout.
func TestRetryFromStandardInput(t *testing.T) {
	build(t, everyState)
	got := piped(t, id(1).String()+"\n\n  "+id(2).String(), "--db", "app.db", "dead", "retry", "-", id(1).String())
	require.Equal(t, outcomeOf{0, "retried 2, skipped 0\n", orphanNote}, got)
	require.Equal(t, outcomeOf{exitNoMatch, "", "error: there is no ID on standard input\n"}, piped(t, " \n", "--db", "app.db", "dead", "retry", "-"))
	require.Equal(t, exitUsage, piped(t, "null\n", "--db", "app.db", "dead", "retry", "-").code)
}

// Programs receive the result for each job.
func TestRetryAsJSON(t *testing.T) {
	build(t, everyState)
	got := jobctl(t, "--db", "app.db", "-o", "json", "dead", "retry", id(1).String(), id(6).String())
	require.Equal(t, exitConflict, got.code)
	require.Equal(t, `{
  "retried": 1,
  "skipped": 1,
  "dry_run": false,
  "jobs": [
    {
      "id": "019caa00-0000-7000-8000-000000000001",
      "result": "retried",
      "error": null
    },
    {
      "id": "019caa00-0000-7000-8000-000000000006",
      "result": "not_dead",
      "error": "job 019caa00-0000-7000-8000-000000000006: conflict: it is ready, not dead"
    }
  ]
}
`, got.stdout)
	got = jobctl(t, "--db", "app.db", "-o", "jsonl", "dead", "retry", "--all", "-y")
	require.Equal(t, outcomeOf{0, `{"id":"019caa00-0000-7000-8000-000000000002","result":"retried","error":null}` + "\n", ""}, got)
}

// The limit on crashes is the app's: changing one job makes no other dead.
func TestRetryCondemnsNobody(t *testing.T) {
	build(t, func(f *file) {
		f.kill(pawl.Envelope{Queue: "a"}, pawl.ReasonPermanent, "no")
		f.add(pawl.Envelope{Queue: "b"})
		f.fetch("b")
	})
	for range 4 { // a process that dies with the lease, time and again
		q, err := bolt.Open("app.db", &bolt.Options{Logger: hclog.NewNullLogger(), Now: func() time.Time { return today }})
		require.NoError(t, err)
		_, err = q.Fetch(context.Background(), pawl.Request{Queues: []string{"b"}, Max: 1, Wait: pawl.WaitNot})
		require.NoError(t, err)
		require.NoError(t, q.Close())
	}
	require.Equal(t, 4, look(t, id(2)).Crashes)
	require.Zero(t, jobctl(t, "--db", "app.db", "dead", "retry", id(1).String()).code)
	e := look(t, id(2))
	require.Equal(t, pawl.Ready, e.State)
	require.Equal(t, 5, e.Crashes)
}

// The command counts the retries that the disk refuses, and names as many of them as there is
// room for.
func TestRetryReportsFailures(t *testing.T) {
	rs := results{{id: id(1)}, {id: id(2), err: fmt.Errorf("job 2: %w", pawl.ErrNotFound)}}
	for n := range 12 {
		rs = append(rs, result{id: id(n + 3), err: fmt.Errorf("retry %c: %w", 'a'+n, pawl.ErrUnknownOutcome)})
	}
	var stdout bytes.Buffer
	a := &app{stdout: bufio.NewWriter(&stdout), flags: shared{output: "jsonl"}}
	c := &change{app: a, verb: verb{did: "retried", miss: "not_dead"}, chosen: true, results: rs}
	err := c.report(t.Context())
	require.Equal(t, exitError, a.failure(err).code)
	require.EqualError(t, err, "it is not known whether 12 of 14 jobs were retried:")
	require.Equal(t, 10, strings.Count(a.failure(err).next, "outcome unknown"))
	require.True(t, strings.HasSuffix(a.failure(err).next, "\nand 2 more"))
	require.NoError(t, a.stdout.Flush())
	require.Equal(t, 12, strings.Count(stdout.String(), `"result":"unknown"`))

	a.flags.output = "table"
	c.results = rs[:3]
	err = c.report(t.Context())
	require.Contains(t, a.failure(err).next, "It may have been done")
}

// look reads one job of app.db.
func look(t *testing.T, id pawl.ID) *pawl.Envelope {
	t.Helper()
	r, err := bolt.OpenReader("app.db")
	require.NoError(t, err)
	defer r.Close()
	e, err := r.Job(context.Background(), id)
	require.NoError(t, err)
	return e
}
