package main

import (
	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

func (a *app) jobCancelCommand() *cobra.Command {
	action := &admin.Action{Verb: admin.Cancel}
	v := verb{
		words: "job cancel", do: "cancel", did: "cancelled", ask: "Cancel %s?",
		states: []pawl.State{pawl.Ready, pawl.Delayed, pawl.Leased},
		only:   "Only a waiting or running job can be cancelled", miss: "wrong_state",
		list:  "'jobctl job list' shows the jobs of all queues.",
		asks:  true,
		apply: act(action),
	}
	return a.changing(v, "cancel", "end waiting or running jobs",
		`Ends jobs. A waiting job becomes a dead job with reason "cancelled" at once. A
running job is only asked to end: its handler's context ends, and the job stays
leased until the handler returns. The job of a workflow run is refused; use
'jobctl wf cancel' to end the run.`,
		`  jobctl --db jobs.db job cancel 01902a3b-7a40-7000-8000-0123456789ab
  jobctl --db jobs.db job cancel -q email -k mail.welcome -s delayed`, func(c *cobra.Command) {
			c.Flags().BoolVar(&action.Force, "force", false, "also cancel jobs of workflow runs, which leaves the runs dead without undoing anything")
		})
}
