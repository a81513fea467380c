package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
)

func (a *app) deadListCommand() *cobra.Command {
	var l list
	s := &spec{
		use: "list [FILTER...] [-n COUNT] [--after CURSOR]", short: "dead jobs with their last error", ids: true,
		long: `Lists dead jobs in the order in which they became dead, queue by queue. With
--newest or --sort died the order is across all queues.`,
		example: `  jobctl --db jobs.db dead list -q email -k mail.welcome
  jobctl --db jobs.db dead list --died-since 2h --newest
  jobctl --db jobs.db dead list --error timeout --older-than 2h`,
		json:  pageFields + jobFields,
		exits: []int{exitLocked, exitDamaged, exitFormat},
		run:   func(ctx context.Context, _ []string) error { return l.run(ctx, a, a.deadListing()) },
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
