package main

import (
	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// The commands that change jobs, except those that enqueue, forward, and purge them.

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

func (a *app) jobCancelCommand() *cobra.Command {
	action := &admin.Action{Verb: admin.Cancel}
	v := verb{
		words: "job cancel", do: "cancel", did: "cancelled", ask: "Cancel %s?",
		states: []pawl.State{pawl.Ready, pawl.Delayed, pawl.Leased},
		only:   "Only a waiting or running job can be cancelled", miss: "wrong_state",
		list:  "'jobctl job list' shows the jobs of all queues.",
		asks:  true,
		apply: act(action), cascades: true,
	}
	return a.changing(v, "cancel", "end waiting or running jobs",
		`Ends jobs. A waiting job becomes a dead job with reason "cancelled" at once. A
running job is only asked to end: its handler's context ends, and the job stays
leased until the handler returns. The job of a workflow run is refused; use
'jobctl wf cancel' to end the run.

A job that waits for the success of a cancelled job would wait forever. --cascade
cancels it too, and those that wait for it in turn. Named jobs may be dead already.`,
		`  jobctl --db jobs.db job cancel 01902a3b-7a40-7000-8000-0123456789ab
  jobctl --db jobs.db job cancel 01902a3b-7a40-7000-8000-0123456789ab --cascade
  jobctl --db jobs.db job cancel -q email -k mail.welcome -s delayed`, func(c *cobra.Command) {
			c.Flags().BoolVar(&action.Force, "force", false, "also cancel jobs of workflow runs, which leaves the runs dead without undoing anything")
		})
}

func (a *app) jobRunNowCommand() *cobra.Command {
	v := verb{
		words: "job run-now", do: "run", did: "made ready", ask: "Run %s now?", states: []pawl.State{pawl.Delayed},
		only: "Only a delayed job can be run now", miss: "wrong_state",
		list:  "'jobctl job list -s delayed' shows the delayed jobs.",
		apply: act(&admin.Action{Verb: admin.RunNow}),
	}
	return a.changing(v, "run-now", "make delayed jobs ready at once",
		`Makes delayed jobs, including those that wait for a retry, ready at once.`,
		`  jobctl --db jobs.db job run-now 01902a3b-7a40-7000-8000-0123456789ab
  jobctl --db jobs.db job run-now -q email -s delayed`, nil)
}

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
