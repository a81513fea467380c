package main

import (
	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

func (a *app) jobRunNowCommand() *cobra.Command {
	v := verb{
		words: "job run-now", do: "run", did: "made ready", ask: "Run %s now?", states: []pawl.State{pawl.Delayed},
		only: "Only a delayed job can be run now", miss: "wrong_state",
		list:  "'jobctl job list -s delayed' shows the delayed jobs.",
		apply: act(&admin.Action{Verb: admin.RunNow}),
	}
	return a.changing(v, "run-now", "make delayed jobs ready at once",
		`Makes jobs that wait for a time or for a retry ready at once.`,
		`  jobctl --db jobs.db job run-now 01902a3b-7a40-7000-8000-0123456789ab
  jobctl --db jobs.db job run-now -q email -s delayed`, nil)
}
