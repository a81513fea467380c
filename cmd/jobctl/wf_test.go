package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a change by filters, and a removal, reports the number and does nothing without a yes.
func TestChangesOfRunsAsk(t *testing.T) {
	for line, c := range map[string]struct{ question, done string }{
		"wf cancel --flow order":                   {"2 runs match (flow=order status=running|sleeping|waiting|paused|blocked|dead).\nCancel them? Type y: ", "asked to cancel 2, skipped 0\n"},
		"wf resume -s dead":                        {"1 run matches (status=dead).\nResume it? Type y: ", "resumed 1, skipped 0\n"},
		"wf pause --all -n 3":                      {"3 runs match (status=running|sleeping|waiting|blocked|dead).\nPause them? Type y: ", "paused 3, skipped 0\n"},
		"wf terminate --id-prefix dead":            {"1 run matches (status=running|sleeping|waiting|paused|blocked|dead id~\"dead\").\nTerminate it without undoing anything? Type y: ", "asked to terminate 1, skipped 0\n"},
		"wf prune --utc --before 2026-03-01T09:10": {"4 runs ended before 2026-03-01T09:10:00.000Z.\nRemove them for good? Type y: ", "removed 4\n"},
	} {
		t.Run(line, func(t *testing.T) {
			build(t, workflows)
			before, err := os.ReadFile("app.db")
			require.NoError(t, err)
			got := asked(t, strings.NewReader("n\n"), append(words("--db app.db"), words(line)...)...)
			require.Equal(t, outcomeOf{exitError, "", c.question + "error: not confirmed, nothing was changed\n"}, got)
			after, err := os.ReadFile("app.db")
			require.NoError(t, err)
			require.True(t, slices.Equal(before, after), "the file was written to")
			got = asked(t, strings.NewReader("y\n"), append(words("--db app.db"), words(line)...)...)
			if strings.HasPrefix(line, "wf cancel") || strings.HasPrefix(line, "wf terminate") {
				c.question += "note: no app is running; the change takes effect when one runs\n"
			}
			require.Equal(t, outcomeOf{exitOK, c.done, c.question}, got)
		})
	}
}

// Rule: commands with a question do not ask programs.
func TestChangesOfRunsDoNotAskPrograms(t *testing.T) {
	build(t, workflows)
	for _, line := range []string{"wf cancel --all", "wf prune"} {
		for _, format := range []string{"json", "jsonl"} {
			got := asked(t, strings.NewReader("y\n"), append(words("--db app.db -o "+format), words(line)...)...)
			require.Equal(t, exitUsage, got.code)
			require.Contains(t, got.stderr, "-o "+format+" does not ask; add -y to ")
		}
	}
}

// Rule: a name that can be split in several ways refers to the existing run.
func TestRefsWithColons(t *testing.T) {
	var want pawl.ID
	build(t, func(f *file) {
		e := workflow.Open(f.q, &workflow.Options{Logger: hclog.NewNullLogger()})
		flow := workflow.Define("a:b", func(*workflow.Run, int) (int, error) { return 0, nil })
		h, err := flow.Start(context.Background(), e, "c::d ", 1)
		require.NoError(t, err)
		want = h.Run()
	})
	got := jobctl(t, "--db", "app.db", "wf", "show", "a:b:c::d ", "-o", "ids")
	require.Equal(t, outcomeOf{exitOK, want.String() + "\n", ""}, got)
	for _, ref := range []string{"a:b:c::d", "a:b:c", "::", ":a:", "a"} {
		require.NotZero(t, jobctl(t, "--db", "app.db", "wf", "show", ref).code, ref)
	}
}

// fakeRuns are workflows that do what a real file does too rarely for a test.
type fakeRuns struct {
	admin.Workflows
	verify func(pawl.ID) error
}

func (f fakeRuns) Verify(_ context.Context, run pawl.ID) error { return f.verify(run) }

func (f fakeRuns) List(context.Context, admin.WorkflowQuery) (l workflow.Listing, err error) {
	for n := range 3 {
		l.Runs = append(l.Runs, workflow.Info{Run: id(n), Status: workflow.Waiting})
	}
	return l, nil
}

// Rule: an error about the whole queue ends a verification; an error about a run concerns only
// that run, with exit code 5, even for code that panics.
func TestVerifyDistinguishesRunsFromTheQueue(t *testing.T) {
	for _, c := range []struct {
		err    error
		result string
		code   int
	}{
		{errors.New("the code panicked"), "failed", exitDamaged},
		{workflow.ErrNoFlow, "no_flow", exitDamaged},
		{pawl.ErrCorrupt, "damaged", exitDamaged},
		{&workflow.DeterminismError{}, "differs", exitDamaged},
		{workflow.ErrNotRunning, "", exitOK},
		{admin.ErrUnreachable, "", exitLocked},
	} {
		got := asOfToday(t.Context(), nil, false, func(a *app) error {
			v := &verification{app: a}
			v.view.Compared, v.filter.statuses = true, openStatuses
			err := v.all(t.Context(), fakeRuns{verify: func(run pawl.ID) error {
				if run == id(1) {
					return c.err
				}
				return nil
			}}, nil)
			if err != nil {
				require.Len(t, v.view.Runs, 1)
				return a.runFailure(err)
			}
			if c.result != "" {
				require.Equal(t, c.result, v.view.Runs[1].Result)
				require.Equal(t, 1, v.view.Unfit)
			}
			require.Equal(t, 2, v.view.Fit)
			return v.verdict(false)
		})
		require.Equal(t, c.code, got.code, "%v: %s", c.err, got.stderr)
	}
}

// changeOf runs a change of that many runs.
func changeOf(t *testing.T, ctx context.Context, format string, n int, apply func(runs []pawl.ID) ([]error, error)) outcomeOf {
	t.Helper()
	return asOfToday(t.Context(), nil, false, func(a *app) error {
		a.flags.output = format
		c := &change{app: a, verb: verb{do: "cancel", did: "cancelled", miss: "wrong_status", runs: true}}
		c.verb.apply = func(_ context.Context, _ admin.Admin, _ how, runs []pawl.ID) ([]error, error) { return apply(runs) }
		var todo []*result
		for i := range n {
			c.results = append(c.results, result{id: id(i), err: errNotTried})
		}
		for i := range c.results {
			todo = append(todo, &c.results[i])
		}
		err := c.portions(ctx, nil, todo, func(int64, int64) {})
		if reportErr := c.report(ctx); err == nil {
			err = reportErr
		}
		return err
	})
}

// Rule: an interruption takes effect between two portions, and the rest is reported as not
// tried.
func TestChangeOfRunsIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	got := changeOf(t, ctx, "table", atOnce+3, func(runs []pawl.ID) ([]error, error) { stop(); return make([]error, len(runs)), nil })
	require.Equal(t, outcomeOf{exitInterrupted, "cancelled 1000, skipped 3\n", "error: interrupted: 1000 of 1003 runs were cancelled\n  3 runs not tried; run the command again for the rest.\n"}, got)
}

// Rule: an error of the queue ends the change: before anything was done it is the only result;
// later, each run of the portion has it, and the rest are not tried.
func TestChangeOfRunsMeetsTheQueuesEnd(t *testing.T) {
	got := changeOf(t, t.Context(), "table", 40, func([]pawl.ID) ([]error, error) { return nil, pawl.ErrClosed })
	require.Equal(t, outcomeOf{exitError, "", "error: " + pawl.ErrClosed.Error() + "\n"}, got)

	portions := 0
	got = changeOf(t, t.Context(), "table", 2*atOnce+2, func(runs []pawl.ID) ([]error, error) {
		if portions++; portions == 2 {
			return nil, pawl.ErrClosed
		}
		return make([]error, len(runs)), nil
	})
	require.Equal(t, exitError, got.code)
	require.Equal(t, "cancelled 1000, skipped 1002\n", got.stdout)
	require.Contains(t, got.stderr, "error: 1000 of 2002 runs could not be cancelled:\n  "+pawl.ErrClosed.Error()+" (1000 runs)\n  and 2 runs not tried after that\n")
	require.Contains(t, got.stderr, "'jobctl wf show' shows the state of each.\n")
}

// Rule: a run that filters selected is left alone without an error if its status has changed; a
// named run is changed whatever its status.
func TestChangeOfRunsDecidesWhenItChanges(t *testing.T) {
	moved := func([]pawl.ID) ([]error, error) {
		return []error{nil, fmt.Errorf("run 2: %w: it is done now", pawl.ErrNotEligible), workflow.ErrNotRunning, workflow.ErrNotFound}, nil
	}
	got := changeOf(t, t.Context(), "jsonl", 4, moved)
	require.Equal(t, exitConflict, got.code, "named")
	for _, word := range []string{"cancelled", "wrong_status", "ended", "not_found"} {
		require.Contains(t, got.stdout, fmt.Sprintf(`"result":%q`, word))
	}

	var asked how
	for _, status := range []string{"", "waiting"} {
		s := &runSelection{runFilter: runFilter{status: status, statuses: openStatuses}}
		c := &change{selection: s, chosen: true}
		asked = c.how(false)
		want := openStatuses
		if status != "" {
			want = []workflow.Status{workflow.Waiting}
		}
		require.Equal(t, want, asked.statuses)
		c.chosen = false
		require.Empty(t, c.how(false).statuses)
	}
}

// Rule: text in a file cannot harm a terminal.
func TestRunsAreEscaped(t *testing.T) {
	const evil = "\x1b[31m\u202e\n"
	build(t, func(f *file) {
		e := workflow.Open(f.q, &workflow.Options{Build: evil, Logger: hclog.NewNullLogger()})
		sent := make(chan struct{}) // the run ends after its signal
		flow := workflow.Define("flow"+evil, func(r *workflow.Run, in string) (string, error) {
			if _, err := workflow.Step(r, "ok"+evil, func(context.Context) (string, error) { <-sent; return in, nil }); err != nil {
				return "", err
			}
			if err := workflow.Publish(r, "key"+evil, in); err != nil {
				return "", err
			}
			return workflow.Step(r, "bad"+evil, func(context.Context) (string, error) { return "", pawl.Permanent(errors.New("no " + evil + evil)) })
		})
		f.settle(e, []workflow.Definition{flow}, 1, func() {
			h, err := flow.Start(context.Background(), e, "id"+evil, evil)
			require.NoError(t, err)
			require.NoError(t, e.Send(context.Background(), h.Run(), "signal"+evil, pack(t, evil), ""))
			close(sent)
		})
	})
	ref := "flow" + evil + ":id" + evil
	for _, format := range []string{"table", "wide", "json", "jsonl", "ids"} {
		for _, args := range [][]string{{"list"}, {"show", ref}, {"show", ref, "-v"}, {"verify", ref}, {"cancel", ref}, {"fork", ref, "--from", "x" + evil, "--id", evil}} {
			got := jobctl(t, append([]string{"--db", "app.db", "-o", format, "wf"}, args...)...)
			require.NotContains(t, got.stdout+got.stderr, "\x1b", "%s %v", format, args)
			require.NotContains(t, got.stdout+got.stderr, "\u202e", "%s %v", format, args)
		}
	}
}

// Rule: a list without a limit shows everything, and a limited list says that there are more.
func TestRunsListReportsMore(t *testing.T) {
	build(t, workflows)
	for limit, more := range map[string]bool{"9": true, "10": false, "11": false, "0": false} {
		got := jobctl(t, words("--db app.db wf list -o ids -n "+limit)...)
		require.Equal(t, exitOK, got.code)
		require.Equal(t, more, strings.Contains(got.stderr, "there are more"), limit)
	}
}

// Rule: a run whose job no worker has is ready, if one read finds all leased jobs.
func TestRunningIsDistinctFromReady(t *testing.T) {
	run := &workflow.Info{Run: id(1), Status: workflow.Running}
	page := admin.Page{Jobs: []pawl.Listed{{Job: &pawl.Envelope{ID: id(1)}}}}
	status := func(page admin.Page, run *workflow.Info) string {
		held, err := leased(t.Context(), &fake{pages: []admin.Page{page}})
		require.NoError(t, err)
		return new(app).runRow(run, held, today)[3]
	}
	require.Equal(t, "running", status(page, run))
	require.Equal(t, "running, ready", status(admin.Page{}, run))
	require.Equal(t, "running", status(admin.Page{Next: "more"}, run))
	require.Equal(t, "running, cancel requested", status(admin.Page{}, &workflow.Info{Run: id(1), Status: workflow.Running, Cancelling: "why"}))
	require.Equal(t, "waiting", status(admin.Page{}, &workflow.Info{Run: id(1), Status: workflow.Waiting}))
}

// Rule: values that a codec of the app has encoded are shown as such, in every format, and never as bytes that mean nothing.
func TestEncodedValues(t *testing.T) {
	build(t, func(f *file) {
		c, err := workflow.NewCipher("a", map[string][]byte{"a": make([]byte, workflow.CipherKeyBytes)})
		require.NoError(t, err)
		e := workflow.Open(f.q, &workflow.Options{Codec: c, Logger: hclog.NewNullLogger()})
		f.settle(e, []workflow.Definition{order}, 1, func() {
			_, err := order.Start(context.Background(), e, "1", 6)
			require.NoError(t, err)
		})
	})
	got := jobctl(t, words("--db app.db wf show order:1 -v")...)
	require.Zero(t, got.code, got.stderr)
	for _, name := range []string{"input", "result of reserve", "published price"} {
		require.Regexp(t, name+", [0-9]+ bytes, encoded by the codec of the app\n", got.stdout)
	}
	got = jobctl(t, words("--db app.db wf show order:1 -v -o json")...)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, `"encoding": "codec"`)
	require.NotContains(t, got.stdout, `"encoding": "unknown"`)
}
