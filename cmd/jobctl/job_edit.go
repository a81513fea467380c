package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/driver"
)

func (a *app) jobEditCommand() *cobra.Command {
	dry := false
	c := a.command(&spec{
		use: "edit ID JSON|-|@FILE", short: "replace the arguments of a job, and retry a dead one", args: -1, ids: true,
		long: `Replaces the arguments of a ready, delayed or dead job. A dead job becomes ready, and its
attempts start again from 0. The job keeps its ID and its history, and the header
pawl-edits names the old arguments. The arguments are written as in 'job enqueue'. ID may
also be the beginning or the end of an ID.

Where a worker of the running app has the kind, they are first decoded as its type, and
an error names the field that does not fit; nothing changes then. The file of a stopped
app and a server have no types, and the command says that nobody checked the arguments.
A signed job is not edited, since the signature covers its arguments.`,
		example: `  jobctl --db jobs.db job show 01902a3b-7a40-7000-8000-0123456789ab -o json
  jobctl --db jobs.db job edit 9ab… '{"To":"ada@example.com"}'
  jobctl --db jobs.db job edit 9ab… @args.json --dry-run`,
		json:     "one object: id, typed (a worker's type has checked the arguments), dry_run\n",
		exits:    []int{exitNoMatch, exitConflict},
		complete: a.completeIDs(pawl.Ready, pawl.Delayed, pawl.Dead),
		run:      func(ctx context.Context, args []string) error { return a.edit(ctx, args, dry) },
	})
	c.Flags().BoolVar(&dry, "dry-run", false, "check the arguments, and change nothing")
	return c
}

// editedView is the object of `job edit`.
type editedView struct {
	ID     pawl.ID `json:"id"`
	Typed  bool    `json:"typed"`
	DryRun bool    `json:"dry_run"`
}

func (a *app) edit(ctx context.Context, args []string, dry bool) error {
	const words = "job edit"
	if len(args) != 2 {
		return usage(words, "%s given; name one job and its arguments", plural(len(args), "argument"))
	}
	text, err := a.argument(args[1], jsonFile)
	if err != nil {
		return err
	}
	payload, err := admin.EncodeJSON(text)
	if err != nil {
		return usage(words, "%s", err)
	}
	return a.withJob(ctx, words, args[:1], func(queue admin.Admin, id pawl.ID) error {
		job, err := queue.Job(ctx, id)
		if err != nil {
			return err
		}
		if err := checkHandled(&pawl.Envelope{Kind: job.Kind, Payload: payload}); err != nil {
			return usage(words, "%s", err)
		}
		done, err := queue.Edit(ctx, admin.Edit{ID: id, Payload: payload, Was: driver.SumOf(job.Payload), DryRun: dry})
		if errors.Is(err, admin.ErrWorkflowJob) {
			return &failure{exitConflict, err.Error(), "'jobctl wf fork' starts a run anew from one of its steps."}
		}
		if err != nil {
			return err
		}
		switch {
		case !a.people() && a.flags.output != "ids":
			return a.print(editedView{id, done.Typed, dry})
		case dry:
			a.say("job %s would be edited; nothing was changed", id)
		default:
			fmt.Fprintln(a.stdout, id)
		}
		if !done.Typed {
			a.say("note: the arguments were not checked by the type of %s, because no worker of a running app has the kind here", job.Kind)
		}
		return nil
	})
}
