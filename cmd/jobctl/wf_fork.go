package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// forkView is the object of `wf fork`.
type forkView struct {
	Run        *string    `json:"run"`
	ID         admin.Text `json:"id"`
	ForkedFrom string     `json:"forked_from"`
	Step       admin.Text `json:"step"`
	DryRun     bool       `json:"dry_run"`
}

func (a *app) wfForkCommand() *cobra.Command {
	from, id, dry := "", "", false
	c := a.command(&spec{
		use: "fork REF --from STEP --id NEW", short: "start a new run from a step of another", args: 1, ids: true,
		long: refText + `

Starts a new run, with the input of another and the results of the steps before --from,
which is the first step that the new run executes itself. The other run is unchanged,
ended or not, and keeps its signals. A STEP is written as in 'jobctl wf show'. The
command prints the ID of the new run.`,
		example:  "  jobctl --db jobs.db wf fork order:1042 --from charge --id 1042-again",
		json:     "one object with run (the new one; null for --dry-run), id, forked_from\n  (the run), step, dry_run\n",
		exits:    []int{exitNoMatch, exitConflict},
		complete: a.completeRefs(1),
		run: func(ctx context.Context, args []string) error {
			r, err := oneRef("wf fork", args)
			switch {
			case err != nil:
				return err
			case from == "":
				return misused("wf fork", "no step was named; add --from")
			case id == "":
				return misused("wf fork", "the new run has no ID; add --id")
			}
			return a.fork(ctx, r, from, id, dry)
		},
	})
	c.Flags().Var(textFlag(&from), "from", "the first `STEP` that the new run executes itself")
	c.Flags().Var(textFlag(&id), "id", "the `ID` of the new run among those of its flow")
	dryRunFlag(c, &dry)
	a.completeFlag(c, "from", a.completeSteps)
	return c
}

func (a *app) fork(ctx context.Context, r ref, from, id string, dry bool) error {
	v := forkView{ID: admin.Text(id), Step: admin.Text(from), DryRun: dry}
	err := a.withWorkflows(ctx, func(w admin.Workflows) error {
		run, err := r.find(ctx, w)
		if err != nil {
			return err
		}
		v.ForkedFrom = run.String()
		flow, err := flowWithStep(ctx, w, run, from)
		if err != nil {
			return err
		}
		if dry {
			return isFree(ctx, w, flow, id)
		}
		made, err := w.Fork(ctx, run, from, id)
		if err == nil {
			text := made.String()
			v.Run = &text
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !a.people() && a.flags.output != "ids":
		return a.print(v)
	case dry:
		a.say("1 run would be started; nothing was changed")
	default:
		fmt.Fprintln(a.stdout, *v.Run)
	}
	return nil
}

// flowWithStep returns the flow of a run. It rejects a step that the run has not taken, before
// anything is opened for writing.
func flowWithStep(ctx context.Context, w admin.Workflows, run pawl.ID, step string) (flow string, err error) {
	all, err := w.Show(ctx, run, admin.RunJournal)
	if err != nil {
		return "", err
	}
	for i := range all.Journal {
		if all.Journal[i].Step() == step {
			return all.Flow, nil
		}
	}
	return "", &failure{exitNoMatch, fmt.Sprintf("run %s has no step %q", run, step), "'jobctl wf show' has its steps."}
}

// isFree rejects an ID that another run of the flow has.
func isFree(ctx context.Context, w admin.Workflows, flow, id string) error {
	switch taken, err := w.Find(ctx, flow, id); {
	case err == nil:
		return fmt.Errorf("fork: workflow %s %q, which is run %s: %w", flow, id, taken, workflow.ErrConflict)
	case !errors.Is(err, workflow.ErrNotFound):
		return err
	}
	return nil
}
