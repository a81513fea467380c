package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// Rule: an open run shows the state of its job, since when it has that state, its own last
// failure, and what it waits for although it could run.
func TestShowHasTheJobOfARun(t *testing.T) {
	ago := today.Add(-time.Minute)
	failed := []pawl.Failure{{Attempt: 1, At: ago, Error: "disk\nfull"}}
	for name, c := range map[string]struct {
		run          workflow.Info
		job          admin.JobOfRun
		shown, waits string
	}{
		"that has ended": {run: workflow.Info{Status: workflow.Done}},
		"that runs": {
			run:   workflow.Info{Status: workflow.Running},
			job:   admin.JobOfRun{Job: &pawl.Envelope{State: pawl.Leased, LeasedSince: ago, Crashes: 2}, Live: true, Paused: true},
			shown: "job         leased since 2026-03-01T11:59:04.000Z  (1m00s ago)\ncrashes     2 in a row\n",
		},
		"in long steps": {
			run: workflow.Info{Status: workflow.Running},
			job: admin.JobOfRun{Job: &pawl.Envelope{State: pawl.Leased, LeasedSince: ago}, Live: true, Steps: "charge since 2026-03-01T11:59:04Z"},
			shown: "job         leased since 2026-03-01T11:59:04.000Z  (1m00s ago)\n" +
				"working on  charge since 2026-03-01T11:59:04Z\n",
		},
		"whose process is gone in a step": {
			run: workflow.Info{Status: workflow.Running},
			job: admin.JobOfRun{Job: &pawl.Envelope{State: pawl.Leased, LeasedSince: ago}, Steps: "charge since 2026-03-01T11:59:04Z"},
			shown: "job         leased; its process is gone, the next open makes it ready\n" +
				"worked on   charge since 2026-03-01T11:59:04Z\n",
			waits: "the app, which is not running",
		},
		"whose process is gone": {
			run:   workflow.Info{Status: workflow.Running},
			job:   admin.JobOfRun{Job: &pawl.Envelope{State: pawl.Leased, LeasedSince: ago}},
			shown: "job         leased; its process is gone, the next open makes it ready\n",
			waits: "the app, which is not running",
		},
		"that fails by itself": {
			run:   workflow.Info{Status: workflow.Running},
			job:   admin.JobOfRun{Job: &pawl.Envelope{State: pawl.Delayed, BackoffSince: ago, NotBefore: today.Add(time.Minute), History: failed}, Live: true},
			shown: "job         failed, runs again at 2026-03-01T12:01:04.000Z  (in 1m00s)\nfailed      1m00s ago: disk\n            full\n",
		},
		"whose error has the failure": {
			run:   workflow.Info{Status: workflow.Dead, Error: "its job is a dead job: disk\nfull"},
			job:   admin.JobOfRun{Job: &pawl.Envelope{State: pawl.Dead, Death: &pawl.Death{At: ago}, Crashes: 5, History: failed}},
			shown: "job         dead since 2026-03-01T11:59:04.000Z  (1m00s ago)\n",
			waits: "'jobctl wf resume'",
		},
		"that sleeps": {
			run: workflow.Info{Status: workflow.Sleeping},
			job: admin.JobOfRun{Job: &pawl.Envelope{State: pawl.Delayed}, Live: true, Paused: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := asOfToday(t.Context(), nil, false, func(a *app) error {
				a.showJobOfRun(&c.run, c.job)
				return nil
			})
			require.Equal(t, outcomeOf{exitOK, c.shown, ""}, got)
			run := &admin.WorkflowRun{Info: c.run}
			require.Equal(t, c.waits, strings.Join(run.WaitsFor(c.job, time.Time.String), "; "))
		})
	}
}

// Rule: verification of panicking code shows the panic; the stack is shown with -v and in JSON.
func TestVerifyFoldsStacks(t *testing.T) {
	const text = "panic: no map\n\ngoroutine 7 [running]:\nmain.main()\n"
	for _, c := range []struct {
		verbose bool
		format  string
		stack   bool
	}{{false, "table", false}, {true, "table", true}, {false, "jsonl", true}} {
		got := asOfToday(t.Context(), nil, false, func(a *app) error {
			a.flags.output, a.flags.verbose = c.format, c.verbose
			v := &verification{app: a}
			v.add(id(1).String(), errText(text))
			return v.print()
		})
		require.Contains(t, got.stdout, "panic: no map")
		require.Equal(t, c.stack, strings.Contains(got.stdout, "main.main()"))
		require.Equal(t, !c.stack, strings.Contains(got.stdout, "-v shows the stack"))
	}
}

// errText is an error with that text.
type errText string

func (e errText) Error() string { return string(e) }

// Rule: a run that has not begun shows what it waits for: the end of open runs, which it names, or the rate of starts.
func TestShowWhyARunHasNotBegun(t *testing.T) {
	holder := pawl.ID{15: 1}
	for name, c := range map[string]struct {
		run   workflow.Info
		shown string
	}{
		"places": {
			run:   workflow.Info{Status: workflow.Waiting, Place: "flow order", Holders: []pawl.ID{holder}},
			shown: "  the end of another run, since flow order has as many open runs as it may\n  run " + holder.String() + " is open\n",
		},
		"rate": {
			run:   workflow.Info{Status: workflow.Waiting, Rate: "key tenant/42", Due: today.Add(time.Minute)},
			shown: "  its turn, at 2026-03-01T12:01:04.000Z  (in 1m00s) or later, since key tenant/42 has as many starts as its rate permits\n",
		},
		"rate of a paused run": {
			run:   workflow.Info{Status: workflow.Paused, Rate: "key tenant/42"},
			shown: "  'jobctl wf resume'\n  its turn, since key tenant/42 has as many starts as its rate permits\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := asOfToday(t.Context(), nil, false, func(a *app) error {
				a.showWaits((&admin.WorkflowRun{Info: c.run}).WaitsFor(admin.JobOfRun{Live: true}, a.moment))
				return nil
			})
			require.Equal(t, outcomeOf{exitOK, "waits for\n" + c.shown, ""}, got)
		})
	}
}
