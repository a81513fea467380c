package main

import (
	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// The commands that request a change of runs. A change takes effect when the app runs.

// openStatuses are the statuses of a run that has not ended.
var openStatuses = []workflow.Status{
	workflow.Running, workflow.Sleeping, workflow.Waiting, workflow.Paused, workflow.Blocked, workflow.Dead,
}

func (a *app) wfCancelCommand() *cobra.Command {
	action := &admin.RunAction{Verb: admin.Cancel}
	return a.changingRuns(verb{
		do: "cancel", noBlocked: true, did: "asked to cancel", ask: "Cancel %s?", statuses: openStatuses, later: true,
		apply: actOnRuns(action),
	}, "ask runs to undo their steps and end",
		`Asks runs to end: the current step gets an error, the flow undoes what was done, and
then the run is cancelled. With the file of a stopped app, this happens when the app
runs again. A blocked run stays blocked until a matching build runs it; 'jobctl wf
terminate' ends it.`,
		`  jobctl --db jobs.db wf cancel order:1042 --reason "the customer called"
  jobctl --db jobs.db wf cancel --flow order -s waiting`, reasonFlag(&action.Reason))
}

func (a *app) wfTerminateCommand() *cobra.Command {
	action := &admin.RunAction{Verb: admin.Terminate}
	return a.changingRuns(verb{
		do: "terminate", did: "asked to terminate", ask: "Terminate %s without undoing anything?", statuses: openStatuses, later: true,
		apply: actOnRuns(action),
	}, "end runs at once, without undoing anything",
		`Ends runs without another step and without undoing anything. 'jobctl wf cancel' lets
them undo what they did. With the file of a stopped app, this happens when the app
runs again.`,
		`  jobctl --db jobs.db wf terminate order:1042 --reason "refunded by hand"
  jobctl --db jobs.db wf terminate --flow import -s blocked`, reasonFlag(&action.Reason))
}

func reasonFlag(to *string) func(*cobra.Command) {
	return func(c *cobra.Command) {
		c.Flags().Var(textFlag(to), "reason", "`WHY`, for people who inspect the run")
	}
}

func (a *app) wfPauseCommand() *cobra.Command {
	return a.changingRuns(verb{
		do: "pause", did: "paused", ask: "Pause %s?",
		statuses: []workflow.Status{workflow.Running, workflow.Sleeping, workflow.Waiting, workflow.Blocked, workflow.Dead},
		apply:    actOnRuns(&admin.RunAction{Verb: admin.Pause}),
	}, "stop runs before their next step",
		`Stops runs before their next step until 'jobctl wf resume', even across a restart of
the app. The current step is completed; signals still arrive, and times still pass.
Pausing a paused run is not an error.`,
		`  jobctl --db jobs.db wf pause order:1042
  jobctl --db jobs.db wf pause --flow order`, nil)
}

func (a *app) wfResumeCommand() *cobra.Command {
	return a.changingRuns(verb{
		do: "resume", did: "resumed", ask: "Resume %s?",
		statuses: []workflow.Status{workflow.Paused, workflow.Blocked, workflow.Dead},
		apply:    actOnRuns(&admin.RunAction{Verb: admin.Resume}),
	}, "resume paused, blocked, or dead runs",
		`Resumes paused runs, tries blocked runs again, whose code did not match their journal,
and retries runs whose job is dead. Any other named run checks again what it waits for,
and retries a failed step at once.`,
		`  jobctl --db jobs.db wf resume order:1042
  jobctl --db jobs.db wf resume --flow order -s dead`, nil)
}
