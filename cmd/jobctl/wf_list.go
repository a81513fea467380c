package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/workflow"
)

// runFields is the part of --help that lists the fields of an admin.Workflow.
const runFields = `  run (the ID of the run, and of its job), flow, id (from its starter)
  status (running, sleeping, waiting, paused, blocked or dead; done, failed,
    cancelled or terminated), queue
  build (that ran it last), created_at, ended_at (times)
  retain (a duration: how long it is kept after it ended; null: forever)
  cancelling (null: no cancel was requested; else why)
  deadline_at (a time: when it is cancelled; null: never)
  due_at (a time: when it continues by itself; null: never, or it is paused)
  waits_for (a list of signals)
  key (of its start; null: none)
  place (what has too many open runs for it to begin, "key tenant/42" or "flow
    order"; null: it does not wait for that), place_holders (a list: some of the
    runs that have the places; empty in a list)
  rate (what has too many starts for it to begin before due_at, "key tenant/42"
    or "flow order"; null: it does not wait for that)
  unread_signals (how many), declared_signals (a list; empty: it accepts any)
  steps, value_bytes, restarts (how many)
  error, parent (the run that started it), forked_from (the run)
  attributes (an object: texts by name, such as customer)
`

// runList is one page of a list of runs.
type runList struct {
	filter runFilter
	paging
}

func (a *app) wfListCommand() *cobra.Command {
	l := new(runList)
	c := a.command(&spec{
		use: "list [FILTER...] [-n COUNT] [--after CURSOR]", short: "runs, by flow, status, ID, attributes, parent and time", ids: true,
		long: `Lists workflow runs in the order in which they were started. WHEN is when a run
ended, or when a waiting run continues by itself. A running run that is "ready" waits
for a worker, or for the app.

A narrow screen omits RUN, since FLOW:ID names a run too, and shortens long names in
the middle; -o wide shows everything.`,
		example: `  jobctl --db jobs.db wf list -s blocked
  jobctl --db jobs.db wf list --flow order --id-prefix 2026/
  jobctl --db jobs.db wf list --attr customer=42 --since 24h
  jobctl --db jobs.db wf list -s dead -o ids | jobctl --db jobs.db wf resume -`,
		json: "one object with next (a cursor for --after; null at the end) and\n  runs: a list of objects with the fields below\nWith -o jsonl only the objects of runs, one per line.\n" + runFields,
		run:  func(ctx context.Context, _ []string) error { return l.run(ctx, a) },
	})
	l.filter.register(a, c)
	l.register(c, "runs")
	return c
}

func (l *runList) run(ctx context.Context, a *app) error {
	out, damaged := a.runListing(), new(damage)
	err := a.runFailure(a.with(ctx, func(queue admin.Admin) error { return l.fill(ctx, a, queue, out, damaged) }))
	none := "there are no workflow runs"
	if l.filter.given() || l.after != "" {
		none = "no runs match; 'jobctl wf list' without filters shows all"
	}
	return l.end(out, err, damaged, "run", none)
}

// fill lists up to the limit.
func (l *runList) fill(ctx context.Context, a *app, queue admin.Admin, out *listing, damaged *damage) error {
	now := a.now()
	var held map[pawl.ID]bool
	return l.read(out, func(after string, limit int, shown bool) (items []item, next string, err error) {
		q := l.filter.query()
		q.After, q.Limit = after, limit
		page, err := queue.Workflows().List(ctx, q)
		if err != nil || !shown {
			return make([]item, len(page.Runs)), page.Next, err
		}
		if a.people() && held == nil && slices.ContainsFunc(page.Runs, isRunning) {
			if held, err = leased(ctx, queue); err != nil {
				return nil, "", err
			}
		}
		for i := range page.Runs {
			run := &page.Runs[i]
			if err := damagedRun(run); err != nil {
				damaged.add(err)
				continue
			}
			items = append(items, item{run.Run.String(), admin.WorkflowOf(*run), a.runRow(run, held, now)})
		}
		return items, page.Next, nil
	})
}

// isRunning reports whether a run is running, or could be.
func isRunning(run workflow.Info) bool { return run.Status == workflow.Running && run.Error == "" }

// leased returns the jobs that a worker has, or had when its process ended; nil if there are
// more than one page.
func leased(ctx context.Context, queue admin.Admin) (map[pawl.ID]bool, error) {
	page, err := queue.List(ctx, admin.Query{Filter: admin.Filter{Filter: pawl.Filter{State: pawl.Leased}}, Detail: admin.IDs, Limit: admin.MaxLimit})
	if err != nil || page.Next != "" {
		return nil, err
	}
	held := make(map[pawl.ID]bool)
	for _, listed := range page.Jobs {
		held[listed.Job.ID] = true
	}
	return held, nil
}

// runListing returns a list of runs.
func (a *app) runListing() *listing {
	columns := []column{
		{title: "RUN", spare: 1}, {title: "FLOW", cut: middle}, {title: "ID", cut: middle}, {title: "STATUS", color: colorOfStatus},
		{title: "STEPS", right: true, spare: 3}, {title: "AGE", right: true, spare: 2}, {title: "WHEN"},
	}
	wide := append(left("WAITS FOR", "QUEUE", "BUILD"), column{title: "SIGNALS", right: true}, column{title: "BYTES", right: true})
	l := a.listing(columns, append(wide, left("CREATED", "LAST ERROR")...)...)
	l.of = "runs"
	return l
}

func (a *app) runRow(run *workflow.Info, held map[pawl.ID]bool, now time.Time) []string {
	status := statusOf(run)
	if status == string(workflow.Running) && held != nil && !held[run.Run] {
		status += ", ready"
	}
	waits := ""
	for _, name := range run.Waits {
		waits += " " + name
	}
	if run.Place != "" {
		waits = "place of " + run.Place
	}
	if run.Rate != "" {
		waits = "rate of " + run.Rate
	}
	return []string{
		run.Run.String(), cell(run.Flow, nameWidth), cell(run.ID, nameWidth), status, fmt.Sprint(run.Steps),
		plain.Span(max(now.Sub(run.Created), 0)), runWhen(run, now),
		orDash(cell(waits, nameWidth)), cell(run.Queue, nameWidth), orDash(cell(run.Build, nameWidth)),
		fmt.Sprint(run.Unread), fmt.Sprint(run.Bytes), a.clock(run.Created), orDash(firstLine(run.Error, errorWidth)),
	}
}

// statusOf returns the status, with a cancel request.
func statusOf(run *workflow.Info) string {
	if run.Cancelling != "" {
		return string(run.Status) + ", cancel requested"
	}
	return string(run.Status)
}

// runWhen returns the relevant time for a run's status.
func runWhen(run *workflow.Info, now time.Time) string {
	switch {
	case run.Status.Ended():
		return relative(now, run.Ended)
	case run.Due.IsZero():
		return "-"
	}
	return relative(now, run.Due)
}

// colorOfStatus returns the color of a run's status.
func colorOfStatus(word string) string {
	status, _, _ := strings.Cut(word, ",")
	switch workflow.Status(status) {
	case workflow.Blocked, workflow.Dead, workflow.Failed:
		return red
	case workflow.Running:
		return green
	case workflow.Sleeping, workflow.Waiting, workflow.Paused:
		return yellow
	}
	return uncolored
}
