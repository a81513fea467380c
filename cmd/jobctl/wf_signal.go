package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/workflow"
)

// signalView is the object of `wf signal`.
type signalView struct {
	Run    string     `json:"run"`
	Signal admin.Text `json:"signal"`
	DryRun bool       `json:"dry_run"`
}

func (a *app) wfSignalCommand() *cobra.Command {
	dedup, dry := "", false
	c := a.command(&spec{
		use: "signal REF NAME [JSON|-|@FILE] [--dedup KEY]", short: "send a signal to a run", args: -1, ids: true,
		long: refText + `

Sends a signal: a run that waits for that name continues with it; for a run that does
not wait for it yet, the signal is kept. Its value is JSON, as given, from standard
input for -, or from a file; without a value it is null. It is read like the arguments
of 'jobctl job enqueue'. A run that has ended accepts no signals, and a flow that
declares its signals accepts no others: exit code 6.`,
		example: `  jobctl --db jobs.db wf signal order:1042 approved '{"By":"ada"}'
  jobctl --db jobs.db wf signal order:1042 approved @by.json --dedup mail-77`,
		json:     "one object with run, signal (its name), dry_run\n",
		exits:    []int{exitNoMatch, exitConflict},
		complete: a.completeRefs(1, openStatuses...),
		run: func(ctx context.Context, args []string) error {
			return a.signal(ctx, args, dedup, dry)
		},
	})
	c.Flags().Var(textFlag(&dedup), "dedup", "of the signals with this `KEY`, the run gets only the first")
	dryRunFlag(c, &dry)
	return c
}

func (a *app) signal(ctx context.Context, args []string, dedup string, dry bool) error {
	const words = "wf signal"
	r, err := oneRef(words, args)
	switch {
	case err != nil:
		return err
	case len(args) < 2:
		return misused(words, "no signal was named; add its name after the run")
	case len(args) > 3:
		return misused(words, "unexpected argument %q; put the value of the signal in one pair of quotes", args[3])
	}
	text, err := a.optionalArgument(args, 2, "Name a file with the JSON of the signal's value after the @.")
	if err != nil {
		return err
	}
	payload, err := admin.EncodeJSON(text)
	if err != nil {
		return misused(words, "the value of the signal: %s", err)
	}
	if err := workflow.CheckSignal(args[1], payload, dedup); err != nil { // in a dry run, too
		return err
	}
	var run pawl.ID
	var before *admin.WorkflowRun
	err = a.withWorkflows(ctx, func(w admin.Workflows) (err error) {
		if run, err = r.find(ctx, w); err != nil {
			return err
		}
		if before, err = w.Show(ctx, run, admin.RunInfo); err != nil {
			return err
		}
		if dry {
			if before.Status.Ended() {
				return fmt.Errorf("run %s: %w", run, workflow.ErrNotRunning)
			}
			return before.Accepts(args[1])
		}
		return w.Signal(ctx, run, args[1], payload, dedup)
	})
	switch v := (signalView{run.String(), admin.Text(args[1]), dry}); {
	case err != nil:
		return err
	case a.flags.output == "ids":
		fmt.Fprintln(a.stdout, run)
	case !a.people():
		return a.print(v)
	case dry:
		fmt.Fprintf(a.stdout, "%s would be sent to run %s; nothing was changed\n", plain.Text(args[1]), run)
	default:
		fmt.Fprintf(a.stdout, "sent %s to run %s\n", plain.Text(args[1]), run)
	}
	switch before.Status {
	case workflow.Paused, workflow.Blocked, workflow.Dead: // otherwise the user would wait in vain
		a.say("note: it is %s, and continues after 'jobctl wf resume'", before.Status)
	}
	if len(before.Waits) > 0 && !slices.Contains(before.Waits, args[1]) { // the name may be a mistake
		a.say("note: it waits for %s; %s is kept until the run waits for it", listed(before.Waits), args[1])
	}
	return nil
}
