package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: no line of many is forgotten, and an ID is printed for each.
func TestBatchInPortions(t *testing.T) {
	build(t, nil)
	got := piped(t, strings.Repeat(`{"kind":"k"}`+"\n", 2*portionJobs+1), words("--db app.db job enqueue --batch")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Equal(t, 2*portionJobs+1, strings.Count(got.stdout, "\n"))
}

// Rule: a portion stays within its limits of jobs and, unless it is a single job, of bytes.
func TestPortionsAreBounded(t *testing.T) {
	line := func(bytes int) string { return fmt.Sprintf(`{"kind":"k","args":%q}`+"\n", strings.Repeat("x", bytes)) }
	lines := line(portionBytes/2-10) + line(portionBytes/2-10) + line(2*portionBytes) + strings.Repeat(line(1), portionJobs+1)
	var sizes []int
	require.NoError(t, (&enqueuing{}).inPortions(t.Context(), strings.NewReader(lines), func(portion []*pawl.Envelope) error {
		sizes = append(sizes, len(portion))
		return nil
	}))
	require.Equal(t, []int{2, 1, portionJobs, 1}, sizes)
}

// Rule: if a portion is refused, the message reports how many jobs are stored, and exactly those
// are.
func TestBatchThatFailsInTheMiddle(t *testing.T) {
	build(t, nil)
	lines := `{"kind":"k","unique":"one"}` + "\n" + strings.Repeat(`{"kind":"k"}`+"\n", portionJobs) + `{"kind":"k","unique":"one","on_conflict":"reject"}`
	got := piped(t, lines, words("--db app.db job enqueue --batch -o jsonl")...)
	require.Equal(t, exitConflict, got.code)
	require.Equal(t, portionJobs, strings.Count(got.stdout, "\n"))
	require.Contains(t, got.stderr, "; the first 1000 of 1002 jobs are stored, the rest are not\n")
	require.Contains(t, got.stderr, "--on-conflict sets what to do")
	require.Contains(t, jobctl(t, words("--db app.db queue show default -o jsonl")...).stdout, `"ready":1000,`)
}

// Rule: a line whose unique key is taken adds nothing, which is reported.
func TestBatchReportsExistingJobs(t *testing.T) {
	build(t, nil)
	got := piped(t, strings.Repeat(`{"kind":"k","unique":"one"}`+"\n", 3), words("--db app.db job enqueue --batch")...)
	require.Equal(t, exitOK, got.code)
	require.Equal(t, "note: 2 of them were not added: another job has the unique key\n", got.stderr)
}

// Rule: flags supply what a line omits, and no line affects another.
func TestBatchLinesKeepToThemselves(t *testing.T) {
	build(t, nil)
	lines := `{"kind":"k","headers":{"of":"line 1"},"priority":3,"unique":"u","unique_in":["delayed"]}` + "\n" + `{"kind":"k"}`
	got := piped(t, lines, "--db", "app.db", "job", "enqueue", "--batch", "--header", "of=flags", "--header", "all=yes", "--priority", "7", "--unique", "v", "--unique-in", "ready")
	require.Equal(t, exitOK, got.code, got.stderr)
	first, second := look(t, idOf(t, got.stdout, 0)), look(t, idOf(t, got.stdout, 1))
	require.Equal(t, map[string]string{"of": "line 1", "all": "yes"}, first.Headers)
	require.Equal(t, map[string]string{"of": "flags", "all": "yes"}, second.Headers)
	require.EqualValues(t, 3, first.Priority)
	require.EqualValues(t, 7, second.Priority)
	require.Equal(t, []pawl.State{pawl.Delayed}, first.UniqueIn)
	require.Equal(t, []pawl.State{pawl.Ready}, second.UniqueIn)
}

// Rule: flags and lines name what a job waits for, and no line affects another.
func TestEnqueueAfter(t *testing.T) {
	build(t, nil)
	got := piped(t, strings.Repeat(`{"kind":"first"}`+"\n", 3), words("--db app.db job enqueue --batch")...)
	a, b, c := idOf(t, got.stdout, 0), idOf(t, got.stdout, 1), idOf(t, got.stdout, 2)
	lines := fmt.Sprintf(`{"kind":"k","after":[%q],"after_any":[%q]}`, c, a) + "\n" + `{"kind":"k"}`
	got = piped(t, lines, "--db", "app.db", "job", "enqueue", "--batch", "--after", fmt.Sprint(a, ",", b), "--after-any", c.String())
	require.Equal(t, exitOK, got.code, got.stderr)
	first, second := look(t, idOf(t, got.stdout, 0)), look(t, idOf(t, got.stdout, 1))
	require.Equal(t, []pawl.ID{c}, first.After)
	require.Equal(t, []pawl.ID{a}, first.AfterAny)
	require.ElementsMatch(t, []pawl.ID{a, b}, second.After)
	require.Equal(t, []pawl.ID{c}, second.AfterAny)
	require.Equal(t, exitUsage, jobctl(t, words("--db app.db job enqueue k --after 1,")...).code)
	require.Equal(t, exitNoMatch, jobctl(t, words("--db app.db job enqueue k --after "+pawl.ID{1}.String())...).code)
}

// idOf returns the n-th of the printed IDs.
func idOf(t *testing.T, printed string, n int) pawl.ID {
	t.Helper()
	id, err := pawl.ParseID(words(printed)[n])
	require.NoError(t, err)
	return id
}

// Rule: all lines are checked before the first is stored; the message has the number of the
// wrong line.
func TestBatchChecksAllLinesFirst(t *testing.T) {
	build(t, nil)
	for line, why := range map[string]string{
		`{"kind":"k"} {"kind":"l"}`:                             "a line has one job",
		`{"kin":"k"}`:                                           `unknown field "kin"`,
		`{"kind":"k","priority":200}`:                           "priority 200 is not between",
		`{"kind":"k","on_conflict":"x"}`:                        `on_conflict "x" is not one of`,
		`{"kind":"k","delay":"1h","at":"2030-01-01T00:00:00Z"}`: "choose one",
		`{"kind":""}`:                                           "kind",
		`[`:                                                     "unexpected",
	} {
		got := piped(t, `{"kind":"k"}`+"\n\n"+line, words("--db app.db job enqueue --batch")...)
		require.Equal(t, exitError, got.code, line)
		require.Empty(t, got.stdout)
		require.Contains(t, got.stderr, "error: line 3: ", line)
		require.Contains(t, got.stderr, why)
		require.Contains(t, got.stderr, "Nothing was stored.")
	}
	require.Contains(t, jobctl(t, words("--db app.db stats -o json")...).stdout, `"queues": []`)
}

// Rule: a dry run prints for each line what the command would print, without an ID.
func TestBatchDryRunAsJSON(t *testing.T) {
	build(t, nil)
	got := piped(t, `{"kind":"k"}`+"\n"+`{"kind":"k"}`, words("--db app.db job enqueue --batch --dry-run -o jsonl")...)
	require.Equal(t, outcomeOf{exitOK, strings.Repeat(`{"id":null,"existing":false,"dry_run":true}`+"\n", 2), ""}, got)
}

// Rule: an interruption waits for the current portion, and the message reports how much is
// stored.
func TestInterruptedBatch(t *testing.T) {
	build(t, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	line := `{"kind":"k"}` + "\n"
	lines := io.MultiReader(strings.NewReader(strings.Repeat(line, portionJobs)), interrupting{strings.NewReader(line), interrupt})
	got := asOfToday(ctx, nil, false, func(a *app) error {
		a.flags = shared{db: "app.db", output: "ids"}
		a.note = func(string) {}
		return (&enqueuing{}).storeAll(ctx, a, lines, portionJobs+1, nil)
	})
	require.Equal(t, exitInterrupted, got.code)
	require.Equal(t, portionJobs, strings.Count(got.stdout, "\n"))
	require.Equal(t, "error: interrupted; the first 1000 of 1001 jobs are stored, the rest are not\n", got.stderr)
}
