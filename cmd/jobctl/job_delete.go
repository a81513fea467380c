package main

import (
	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

func (a *app) jobDeleteCommand() *cobra.Command {
	v := deleting("job delete", "'jobctl job list' shows the jobs of all queues.", pawl.Dead, pawl.Completed)
	return a.changing(v, "delete", "remove dead jobs and records of successes",
		`Permanently removes dead jobs and the records of completed jobs. A ready, delayed
or leased job is not deleted: cancel it first.`,
		`  jobctl --db jobs.db job delete 01902a3b-7a40-7000-8000-0123456789ab
  jobctl --db jobs.db job delete -s completed --older-than 7d`, nil)
}

func (a *app) deadDeleteCommand() *cobra.Command {
	v := deleting("dead delete", "'jobctl dead list' shows the dead jobs of all queues.", pawl.Dead)
	return a.changing(v, "delete", "permanently remove dead jobs",
		`Permanently removes dead jobs, with their payload and history.`,
		`  jobctl --db jobs.db dead delete 01902a3b-7a40-7000-8000-0123456789ab
  jobctl --db jobs.db dead delete --reason cancelled --older-than 30d`, nil)
}

func deleting(words, list string, states ...pawl.State) verb {
	return verb{
		words: words, do: "delete", did: "deleted", ask: "Delete %s for good?", states: states,
		only: "Only a dead or completed job can be deleted", miss: "wrong_state", list: list,
		apply: act(&admin.Action{Verb: admin.Delete}),
	}
}
