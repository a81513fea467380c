package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// size matches the size of the file and of its free part, which depend on the system's page
// size.
var size = regexp.MustCompile(`\d+\.\d KiB|"(size|free)_bytes": ?\d+`)

// Stats counts each state of each queue, and shows how long the oldest job has been ready.
func TestStats(t *testing.T) {
	build(t, everyState)
	got := jobctl(t, "--db", "app.db", "stats")
	got.stdout = size.ReplaceAllString(got.stdout, "SIZE")
	require.Equal(t, outcomeOf{0, `app.db  stopped  format 1  SIZE (SIZE free)
QUEUE    READY  DELAYED  LEASED  DEAD  COMPLETED  OLDEST  STATE
email        1        1       1     1          0     12s  stopped
reports      0        1       0     1          0       -  stopped
`, ""}, got)
}

// The JSON of stats has stable names, null without a ready job, and no table.
func TestStatsAsJSON(t *testing.T) {
	build(t, everyState)
	got := jobctl(t, "--db", "app.db", "stats", "-o", "json")
	got.stdout = size.ReplaceAllString(got.stdout, "SIZE")
	require.Equal(t, outcomeOf{0, `{
  "at": "2026-03-01T12:00:04.000000000Z",
  "path": "app.db",
  "process": null,
  "format": 1,
  SIZE,
  SIZE,
  "max_bytes": null,
  "queues": [
    {
      "name": "email",
      "paused": false,
      "state": "stopped",
      "ready": 1,
      "delayed": 1,
      "leased": 1,
      "dead": 1,
      "completed": 0,
      "held": 0,
      "max_waiting": null,
      "rests_until_at": null,
      "oldest_ready_at": "2026-03-01T11:59:52.000000000Z",
      "oldest_ready_age": "12s",
      "succeeded": null,
      "failed": null
    },
    {
      "name": "reports",
      "paused": false,
      "state": "stopped",
      "ready": 0,
      "delayed": 1,
      "leased": 0,
      "dead": 1,
      "completed": 0,
      "held": 0,
      "max_waiting": null,
      "rests_until_at": null,
      "oldest_ready_at": null,
      "oldest_ready_age": null,
      "succeeded": null,
      "failed": null
    }
  ],
  "pools": [],
  "runs": null
}
`, ""}, got)

	got = jobctl(t, "-o", "jsonl", "--db", "app.db", "stats")
	require.Regexp(t, `^\{"at":"2026-03-01T12:00:04.000000000Z","path":"app.db",.*\}\n$`, got.stdout)
}

// Rule: stats counts the runs of a live app and of a stopped file, if there are any, and begins with
// the runs that need attention; a blocked run exceeds its limit.
func TestStatsOfRuns(t *testing.T) {
	build(t, workflows)
	look := func() {
		t.Helper()
		got := jobctl(t, "--db", "app.db", "stats")
		require.True(t, strings.HasSuffix(got.stdout, "\nruns: 1 blocked, 1 failed, 1 paused, 4 active, 1 done, 1 cancelled, 1 terminated\n"), got.stdout)
		require.Equal(t, "'jobctl wf list -s blocked' lists the blocked runs, and 'jobctl wf show' explains each\n", got.stderr)
		require.Contains(t, jobctl(t, words("--db app.db stats --color always")...).stdout, "runs: \x1b[31m1 blocked, 1 failed, 1 paused\x1b[0m, 4 active")
		got = jobctl(t, words("--db app.db stats -o jsonl --fail-if blocked>0")...)
		require.Equal(t, exitDamaged, got.code)
		require.Contains(t, got.stdout, `"runs":{"active":4,"paused":1,"blocked":1,"done":1,"failed":1,"cancelled":1,"terminated":1,"damaged":0,"more":false}`)
	}
	look()
	defer serve(t, "app.db")()
	look()
}

// An empty queue is not an error.
func TestStatsOfAnEmptyQueue(t *testing.T) {
	build(t, nil)
	got := jobctl(t, "--db", "app.db", "stats")
	require.Equal(t, outcomeOf{0, size.FindString(got.stdout), "no job was ever enqueued\n"},
		outcomeOf{got.code, size.FindString(got.stdout), got.stderr})
	require.Contains(t, jobctl(t, "--db", "app.db", "stats", "-o", "json").stdout, `"queues": []`)
}

// A reading command leaves the file unchanged, byte for byte.
func TestReadingChangesNothing(t *testing.T) {
	build(t, everyState)
	before, err := os.ReadFile("app.db")
	require.NoError(t, err)
	for _, line := range reading() {
		jobctl(t, append([]string{"--db", "app.db"}, words(line)...)...)
	}
	after, err := os.ReadFile("app.db")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// Names from the file are escaped before they reach a terminal.
func TestStatsEscapeNames(t *testing.T) {
	build(t, func(f *file) { f.add(pawl.Envelope{Queue: "q\x1b[2J\u202e\n\xff"}) })
	got := jobctl(t, "--db", "app.db", "stats")
	require.Contains(t, got.stdout, `q\x1b[2J\u202e\n\xff`)
	got = jobctl(t, "--db", "app.db", "stats", "-o", "jsonl")
	require.Contains(t, got.stdout, `"name":{"base64":"cRtbMkrigK4K/w=="}`)
}

// Rule: stats --watch clears only a screen, and never writes one JSON document.
func TestStatsAgain(t *testing.T) {
	build(t, everyState)
	got := jobctl(t, words("--db app.db stats --watch 1ms --fail-if dead>0")...)
	require.Equal(t, exitDamaged, got.code)
	require.NotContains(t, got.stdout, "\x1b")
	got = asOfToday(t.Context(), nil, false, func(a *app) error {
		a.screen, a.flags = true, shared{db: "app.db", output: "table", color: "never"}
		return a.stats(t.Context(), &statsFlags{every: 1, limits: limits{{what: "dead"}}})
	})
	require.True(t, strings.HasPrefix(got.stdout, "\x1b[H\x1b[2Japp.db"), got.stdout)
	require.Equal(t, outcomeOf{exitUsage, "", "error: -o json writes one document, but this output has no end; use -o jsonl\n  See 'jobctl stats --help'.\n"},
		jobctl(t, words("--db app.db stats --watch 1s -o json")...))
}

// uncounted is a queue whose runs cannot be counted.
type uncounted struct {
	fake
	why error
}

func (u *uncounted) Workflows() admin.Workflows { return countless{why: u.why} }

type countless struct {
	admin.Workflows
	why error
}

func (c countless) Count(context.Context) (workflow.Counts, error) { return workflow.Counts{}, c.why }

// Rule: queues are shown even if runs cannot be counted; an engine without runs and an older app are
// no errors, but damage is one. Only the older app is worth a note.
func TestStatsWithoutCounts(t *testing.T) {
	none := &admin.UnsupportedError{Operation: "workflows"}
	for why, want := range map[error]int{none: exitOK, errors.ErrUnsupported: exitOK, pawl.ErrCorrupt: exitDamaged} {
		got := asOfToday(t.Context(), nil, false, func(a *app) error {
			a.flags.output = "table"
			return a.statsOnce(t.Context(), &uncounted{why: why}, new(statsFlags))
		})
		require.Equal(t, want, got.code, got.stderr)
		require.Contains(t, got.stdout, "format 0")
		require.Equal(t, why == errors.ErrUnsupported, strings.Contains(got.stderr, "older release"))
	}
}
