package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// Each job is one line with its state, its attempts and their limit, and the relevant time for
// that state.
func TestJobList(t *testing.T) {
	build(t, everyState)
	require.Equal(t, outcomeOf{0, `ID                                    STATE    QUEUE    KIND          RUNS    AGE  WHEN
019caa00-0000-7000-8000-000000000001  dead     email    mail.send      2/2     3h  2h ago
019caa00-0000-7000-8000-000000000002  dead     reports  report.build   1/4     2h  2h ago
019caa00-0000-7000-8000-000000000003  delayed  reports  report.old     0/4     2h  in 36499d
019caa00-0000-7000-8000-000000000004  leased   email    mail.send      0/4     2h  4m02s ago
019caa00-0000-7000-8000-000000000005  delayed  email    mail.send      0/4  4m02s  in 55m58s
019caa00-0000-7000-8000-000000000006  ready    email    mail.send      0/4    12s  12s ago
`, ""}, jobctl(t, "--db", "app.db", "job", "list"))
}

// Filters combine; an empty result is not an error.
func TestJobListFilters(t *testing.T) {
	build(t, everyState)
	cases := []struct {
		flags string
		want  []int
	}{
		{"-q email", []int{1, 4, 5, 6}},
		{"-k mail.send -s dead", []int{1}},
		{"--kind report.old", []int{3}},
		{"-s delayed", []int{5, 3}},
		{"-s leased", []int{4}},
		{"-s ready", []int{6}},
		{"-s dead -q reports", []int{2}},
		{"-k nowhere", nil},
		{"-n 2", []int{1, 2}},
		{"-n 0", []int{1, 2, 3, 4, 5, 6}},
		{"-n 6", []int{1, 2, 3, 4, 5, 6}},
	}
	for _, c := range cases {
		got := jobctl(t, append(words("--db app.db job list -o jsonl"), words(c.flags)...)...)
		require.Equal(t, exitOK, got.code, c.flags)
		var ids []int
		for line := range strings.Lines(got.stdout) {
			var job admin.Job
			require.NoError(t, json.Unmarshal([]byte(line), &job))
			n := 0
			fmt.Sscanf(job.ID, "019caa00-0000-7000-8000-%d", &n)
			ids = append(ids, n)
		}
		require.Equal(t, c.want, ids, c.flags)
		switch {
		case c.want == nil:
			require.Equal(t, "no jobs match\n", got.stderr, c.flags)
		case c.flags == "-n 2":
			require.Regexp(t, `^showing the first 2, there are more; -n 0 shows all, and --after \S+ the next ones\n$`, got.stderr)
		default:
			require.Empty(t, got.stderr, c.flags)
		}
	}
}

// A list as JSON is one object with the cursor of the next page, even if it is empty; as JSON
// lines it is one object per line.
func TestJobListAsJSON(t *testing.T) {
	build(t, everyState)
	require.Equal(t, outcomeOf{0, `{"jobs": [
  {"id":"019caa00-0000-7000-8000-000000000004","kind":"mail.send","queue":"email","origin":"email","state":"leased","reason":null,"priority":0,"sequence":4,"attempts":0,"max_retries":3,"failures":0,"crashes":0,"created_at":"2026-03-01T09:01:30.000000000Z","not_before":"2026-03-01T09:01:30.000000000Z","deadline":null,"leased_at":"2026-03-01T11:56:02.000000000Z","died_at":null,"completed_at":null,"backoff_since":null,"cancelled":false,"unique_key":null,"unique_in":null,"idempotency_key":null,"idempotency_ttl":null,"retain":null,"timeout":null,"policy":null,"policy_data":null,"key_id":null,"signature":null,"headers":{},"last_error":null,"history":[],"history_dropped":0}
], "next": null}
`, ""}, jobctl(t, "--db", "app.db", "job", "list", "-s", "leased", "-o", "json"))
	require.Equal(t, outcomeOf{0, "{\"jobs\": [], \"next\": null}\n", "no jobs match\n"}, jobctl(t, "--db", "app.db", "-o", "json", "job", "list", "-k", "none"))
	require.Equal(t, outcomeOf{0, "", "no jobs match\n"}, jobctl(t, "--db", "app.db", "-o", "jsonl", "job", "list", "-k", "none"))

	got := jobctl(t, "--db", "app.db", "-o", "json", "job", "list")
	var all struct {
		Jobs []map[string]any
		Next *string
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &all))
	require.Len(t, all.Jobs, 6)
	require.Nil(t, all.Next)

	// A page has the cursor of the next one, and the following pages contain each job once.
	seen, after := []string{}, []string(nil)
	for {
		got := jobctl(t, append([]string{"--db", "app.db", "-o", "json", "job", "list", "-n", "4"}, after...)...)
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &all))
		for _, job := range all.Jobs {
			seen = append(seen, job["id"].(string))
		}
		if all.Next == nil {
			break
		}
		after = []string{"--after", *all.Next}
	}
	require.Equal(t, []string{id(1).String(), id(2).String(), id(3).String(), id(4).String(), id(5).String(), id(6).String()}, seen)
}

// A damaged job does not hide the others: they are listed, it is named on standard error, and
// the exit code reports it.
func TestJobListWithDamage(t *testing.T) {
	build(t, everyState)
	spoil(t, "app.db", id(2))
	for _, format := range []string{"table", "json", "jsonl"} {
		got := jobctl(t, "--db", "app.db", "job", "list", "-o", format)
		require.Equal(t, exitDamaged, got.code)
		require.Equal(t, 5, strings.Count(got.stdout, "019caa00-"), format)
		require.Contains(t, got.stderr, "error: 1 damaged job could not be read and was skipped:\n  job "+id(2).String())
		if format == "json" {
			require.True(t, json.Valid([]byte(got.stdout)))
		}
	}
	require.Equal(t, exitDamaged, jobctl(t, "--db", "app.db", "job", "show", id(2).String()).code)
}

// Many damaged jobs are counted, and not all are named.
func TestJobListWithMuchDamage(t *testing.T) {
	build(t, func(f *file) {
		for range 15 {
			f.add(pawl.Envelope{})
		}
	})
	for n := range 14 {
		spoil(t, "app.db", id(n+1))
	}
	got := jobctl(t, "--db", "app.db", "job", "list")
	require.Equal(t, exitDamaged, got.code)
	require.Contains(t, got.stdout, id(15).String())
	require.Contains(t, got.stderr, "error: 14 damaged jobs could not be read and were skipped:\n")
	require.Equal(t, 10, strings.Count(got.stderr, "job 019caa00"))
	require.Contains(t, got.stderr, "\n  and 4 more\n")
}

// A time outside RFC 3339 breaks neither the JSON nor the table.
func TestJobListWithFarTimes(t *testing.T) {
	build(t, func(f *file) {
		f.add(pawl.Envelope{NotBefore: time.Date(123456, 1, 1, 0, 0, 0, 0, time.UTC)})
	})
	got := jobctl(t, "--db", "app.db", "job", "list", "-o", "jsonl")
	require.Contains(t, got.stdout, `"not_before":"@3833727840000.000000000"`)
	got = jobctl(t, "--db", "app.db", "job", "list")
	require.Equal(t, exitOK, got.code)
	require.Contains(t, got.stdout, "in 106751d")
}

// A table may be longer than the portion whose widths are measured together.
func TestLongTableHasOneHead(t *testing.T) {
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	table := table{out: w, columns: []column{{title: "NAME"}, {title: "N", right: true}}}
	for n := range 3 * tablePortion {
		table.add(fmt.Sprint("job", n), fmt.Sprint(n))
	}
	table.flush()
	require.NoError(t, w.Flush())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3*tablePortion+1)
	require.Equal(t, "NAME      N", lines[0])
	require.Equal(t, "job1499  1499", lines[len(lines)-1])
}
