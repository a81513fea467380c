package main

import (
	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

func (a *app) jobRetryCommand() *cobra.Command { return a.retryCommand("job retry") }

func (a *app) deadRetryCommand() *cobra.Command { return a.retryCommand("dead retry") }

// retryCommand is the one verb in two places, because people look for it in both.
func (a *app) retryCommand(words string) *cobra.Command {
	action := &admin.Action{Verb: admin.Retry}
	v := verb{
		words: words, do: "retry", did: "retried", ask: "Retry %s?", states: []pawl.State{pawl.Dead},
		only: "Only a dead job can be retried", miss: "not_dead", held: true,
		list:  "'jobctl dead list' shows the dead jobs of all queues.",
		apply: act(action),
	}
	return a.changing(v, "retry", "make dead jobs ready again",
		`Makes dead jobs ready again. They keep their history, and their attempts start
again from 0. A dead job stays dead if another job has its unique key, or if its
deadline has passed. As with every change to the file of a stopped app, jobs that
were leased when their process ended become ready too, or dead if they were
cancelled or are past their deadline.`,
		`  jobctl --db jobs.db `+words+` 01902a3b-7a40-7000-8000-0123456789ab
  jobctl --db jobs.db `+words+` -q email --error timeout --dry-run
  jobctl --db jobs.db dead list -n 0 -o ids | jobctl --db jobs.db `+words+` -`,
		func(c *cobra.Command) {
			c.Flags().BoolVar(&action.KeepAttempts, "keep-attempts", false, "keep the count of attempts: a job whose retries are exhausted runs once")
		})
}
