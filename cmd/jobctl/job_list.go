package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// Widths of cells in characters. Names are cut late: people copy them.
const (
	nameWidth  = 48
	errorWidth = 60
)

func (a *app) jobListCommand() *cobra.Command {
	var l list
	s := &spec{
		use: "list [FILTER...] [-n COUNT] [--after CURSOR]", short: "jobs, by queue, state, kind and more", ids: true,
		long: `Lists jobs with their completed runs of those allowed. WHEN tells since when a
ready, leased, dead or completed job is so, and when a delayed one is due. With
-s the jobs come in the order of that state (ready ones as they would run,
completed ones as their records go), else in the order in which they were made.`,
		example: `  jobctl --db jobs.db job list -s delayed
  jobctl --db jobs.db job list -q email --payload user.id=42 --since 2h
  jobctl --db jobs.db job list -n 0 -o jsonl | jq -r .id`,
		json:  "a list of objects with\n" + jobFields,
		exits: []int{exitLocked, exitDamaged, exitFormat},
		run:   func(ctx context.Context, _ []string) error { return l.run(ctx, a, a.jobListing()) },
	}
	c := a.command(s)
	l.register(a, c)
	return c
}

// jobListing is a list of jobs of any state.
func (a *app) jobListing() *jobListing {
	columns := append(left("ID"), column{title: "STATE", color: colorOfState})
	columns = append(columns, left("QUEUE", "KIND")...)
	columns = append(columns, column{title: "RUNS", right: true}, column{title: "AGE", right: true}, column{title: "WHEN"})
	now := a.now()
	return &jobListing{
		listing: a.listing(columns, append([]column{{title: "PRIORITY", right: true}, {title: "CRASHES", right: true}}, left("CREATED", "UNIQUE", "LAST ERROR")...)...),
		cells: func(e *pawl.Envelope) []string {
			return []string{e.ID.String(), string(e.State), cell(e.Queue, nameWidth), cell(e.Kind, nameWidth),
				runs(e), span(max(now.Sub(e.Created), 0)), when(e, now),
				fmt.Sprint(e.Priority), fmt.Sprint(e.Crashes), a.clock(e.Created), orDash(cell(e.UniqueKey, nameWidth)), lastError(e)}
		},
	}
}

// jobListing is a listing whose items are jobs.
type jobListing struct {
	*listing
	cells func(*pawl.Envelope) []string
}

// list is one page of a list of jobs, read in portions, so that nothing is held however
// long it is.
type list struct {
	filter filterFlags
	limit  int
	after  string

	more   bool // there are jobs behind the last
	unsure bool // or there may be: looking further would take long
	next   string
}

func (l *list) register(a *app, c *cobra.Command, states ...pawl.State) {
	l.limit = admin.DefaultLimit
	l.filter.register(a, c, states...)
	c.Flags().VarP(countFlag(&l.limit), "limit", "n", "at most `COUNT` jobs, 0 for all (default 50)")
	c.Flags().Var(textFlag(&l.after), "after", "go on behind this `CURSOR`, which the page before told")
	_ = c.RegisterFlagCompletionFunc("limit", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("after", cobra.NoFileCompletions)
}

func (l *list) run(ctx context.Context, a *app, out *jobListing) error {
	var damaged damage
	err := a.with(ctx, func(queue admin.Admin) error { return l.fill(ctx, queue, out, &damaged) })
	if err == nil || out.count > 0 { // a queue that cannot be reached is no empty list
		out.close()
	}
	switch {
	case err != nil:
		return err
	case l.more:
		a.say("the first %d are shown, there are more; -n 0 shows all, and --after %s those behind them", out.count, l.next)
	case l.unsure:
		a.say("the first %d are shown, there may be more; -n 0 shows all, and --after %s those behind them", out.count, l.next)
	case out.count == 0 && damaged.count == 0:
		a.say("no jobs match")
	}
	return damaged.err()
}

// fill lists up to the limit, and looks whether there is more.
func (l *list) fill(ctx context.Context, queue admin.Admin, out *jobListing, damaged *damage) error {
	q := admin.Query{Filter: l.filter.filters()[0], After: l.after}
	for {
		q.Limit = admin.MaxLimit
		if l.limit > 0 {
			q.Limit = min(q.Limit, l.limit-out.count)
		}
		page, err := queue.List(ctx, q)
		if err != nil {
			return err
		}
		for _, listed := range page.Jobs {
			if listed.Err != nil {
				damaged.add(listed.Err)
				continue
			}
			if err := out.add(item{listed.Job.ID.String(), jobOf(listed.Job), out.cells(listed.Job)}); err != nil {
				return err
			}
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
		if l.limit > 0 && out.count >= l.limit {
			l.next = q.After
			q.Limit, q.Detail = 1, admin.IDs
			page, err := queue.List(ctx, q)
			l.more, l.unsure = len(page.Jobs) > 0, page.Next != ""
			return err
		}
	}
}

// runs is how many runs a job has completed of those that it may have.
func runs(e *pawl.Envelope) string {
	return fmt.Sprintf("%d/%d", e.Attempts, e.MaxRetries+1)
}

// when is the time that matters in a job's state.
func when(e *pawl.Envelope, now time.Time) string {
	switch e.State {
	case pawl.Parked:
		return "-"
	case pawl.Leased:
		return relative(now, e.LeasedSince)
	case pawl.Dead:
		return relative(now, e.Death.At)
	case pawl.Completed:
		return relative(now, e.Completed)
	}
	return relative(now, e.NotBefore)
}

// lastError is the first line of a job's last error.
func lastError(e *pawl.Envelope) string {
	if n := len(e.History); n > 0 {
		return orDash(firstLine(e.History[n-1].Error, errorWidth))
	}
	return "-"
}

func orDash(text string) string {
	if strings.TrimSpace(text) == "" {
		return "-"
	}
	return text
}
