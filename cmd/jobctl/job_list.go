package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// Widths of cells in characters. Names are cut late, because people copy them.
const (
	nameWidth    = 48
	errorWidth   = 60
	payloadWidth = 60
)

func (a *app) jobListCommand() *cobra.Command {
	var l list
	s := &spec{
		use: "list [FILTER...] [-n COUNT] [--after CURSOR]", short: "jobs, by queue, state, kind and more", ids: true,
		long: `Lists jobs with their completed attempts and the limit. WHEN is since when a ready,
leased, dead or completed job has been in its state, and when a delayed job is due.
With -s the jobs are in the order of that state (ready jobs as they would run,
completed jobs as their records expire), otherwise in the order of creation.`,
		example: `  jobctl --db jobs.db job list -s delayed
  jobctl --db jobs.db job list -q email --payload user.id=42 --since 2h
  jobctl --db jobs.db job list -n 0 -o jsonl | jq -r .id`,
		json: pageFields + jobFields,
		run:  func(ctx context.Context, _ []string) error { return l.run(ctx, a, a.jobListing()) },
	}
	c := a.command(s)
	l.register(a, c)
	return c
}

// jobListing returns a list of jobs of any state.
func (a *app) jobListing() *jobListing {
	columns := []column{
		{title: "ID"}, {title: "STATE", color: stateColors.of}, {title: "QUEUE", cut: middle}, {title: "KIND", cut: middle},
		{title: "RUNS", right: true}, {title: "AGE", right: true, spare: 1}, {title: "WHEN"},
	}
	now := a.now()
	return &jobListing{
		when:    len(columns) - 1,
		listing: a.listing(columns, append([]column{{title: "PRIORITY", right: true}, {title: "CRASHES", right: true}}, left("CREATED", "UNIQUE", "LAST ERROR", "PAYLOAD")...)...),
		cells: func(e *pawl.Envelope) []string {
			return []string{e.ID.String(), string(e.State), cell(e.Queue, nameWidth), cell(e.Kind, nameWidth),
				runs(e), plain.Span(max(now.Sub(e.Created), 0)), when(e, now),
				fmt.Sprint(e.Priority), fmt.Sprint(e.Crashes), a.clock(e.Created), orDash(cell(e.UniqueKey, nameWidth)), lastError(e), payloadCell(e.Payload)}
		},
	}
}

// pageFields is the part of --help that describes a page of jobs.
const pageFields = `one object with next (a cursor for --after; null at the end) and
  jobs: a list of objects with the fields below
With -o jsonl only the objects of jobs, one per line.
`

// runs returns how many attempts a job has completed, and how many it may have.
func runs(e *pawl.Envelope) string {
	return fmt.Sprintf("%d/%d", e.Attempts, e.MaxRetries+1)
}

// when returns the relevant time for a job's state.
func when(e *pawl.Envelope, now time.Time) string {
	if e.State == pawl.Delayed {
		return relative(now, e.NotBefore)
	}
	return relative(now, admin.StateSince(e))
}

// lastError returns the first line of a job's last error.
func lastError(e *pawl.Envelope) string {
	return orDash(firstLine(e.LastError(), errorWidth))
}

func orDash(text string) string {
	if strings.TrimSpace(text) == "" {
		return "-"
	}
	return text
}

func (a *app) deadListCommand() *cobra.Command {
	var l list
	s := &spec{
		use: "list [FILTER...] [-n COUNT] [--after CURSOR]", short: "dead jobs with their last error", ids: true,
		long: `Lists dead jobs in the order in which they became dead, queue by queue. With
--newest or --sort died the order is across all queues.`,
		example: `  jobctl --db jobs.db dead list -q email -k mail.welcome
  jobctl --db jobs.db dead list --died-since 2h --newest
  jobctl --db jobs.db dead list --error timeout --older-than 2h`,
		json: pageFields + jobFields,
		run:  func(ctx context.Context, _ []string) error { return l.run(ctx, a, a.deadListing()) },
	}
	c := a.command(s)
	l.register(a, c, pawl.Dead)
	return c
}

// deadListing returns a list of dead jobs.
func (a *app) deadListing() *jobListing {
	columns := []column{
		{title: "ID"}, {title: "QUEUE", cut: middle}, {title: "KIND", cut: middle},
		{title: "REASON", color: func(string) string { return red }, spare: 2}, {title: "RUNS", right: true, spare: 1},
		{title: "DIED"}, {title: "LAST ERROR", cut: end},
	}
	now := a.now()
	return &jobListing{
		listing: a.listing(columns, column{title: "PRIORITY", right: true}, column{title: "CRASHES", right: true},
			column{title: "CREATED"}, column{title: "DIED AT"}, column{title: "UNIQUE"}, column{title: "PAYLOAD"}),
		cells: func(e *pawl.Envelope) []string {
			return []string{e.ID.String(), cell(e.Queue, nameWidth), cell(e.Kind, nameWidth),
				cell(string(e.Death.Reason), nameWidth), runs(e), relative(now, e.Death.At), lastError(e),
				fmt.Sprint(e.Priority), fmt.Sprint(e.Crashes), a.clock(e.Created), a.clock(e.Death.At), orDash(cell(e.UniqueKey, nameWidth)), payloadCell(e.Payload)}
		},
	}
}
