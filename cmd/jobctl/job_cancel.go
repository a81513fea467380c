package main

import (
	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

func (a *app) jobCancelCommand() *cobra.Command {
	v := verb{
		words: "job cancel", do: "cancel", did: "cancelled", ask: "Cancel %s?",
		states: []pawl.State{pawl.Ready, pawl.Delayed, pawl.Parked, pawl.Leased},
		only:   "Only a job that waits or runs can be cancelled", miss: "wrong_state",
		list:  "'jobctl job list' shows the jobs of all queues.",
		apply: act(&admin.Action{Verb: admin.Cancel}),
	}
	return a.changing(v, "cancel", "end jobs that wait or run",
		`Ends jobs: one that waits becomes a dead letter of reason "cancelled" at once, one
that runs is asked to end and becomes one when its handler returns.`,
		`  jobctl --db jobs.db job cancel 01902a3b-7a40-7000-8000-0123456789ab
  jobctl --db jobs.db job cancel -q email -k mail.welcome -s delayed`, nil)
}
