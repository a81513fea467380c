package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/driver"
)

// pruneView is the object of `wf prune`.
type pruneView struct {
	Removed int         `json:"removed"`
	Before  admin.Stamp `json:"before"`
	DryRun  bool        `json:"dry_run"`
}

func (a *app) wfPruneCommand() *cobra.Command {
	var before time.Time
	dry := false
	c := a.command(&spec{
		use: "prune [--before TIME]", short: "remove runs that have ended",
		long: `Permanently removes runs that ended before a time, or all that have ended, with their
journals and results, whether their retention is over or not, after a question with
their number. The ID of a removed run can be used again. The file does not shrink: the
freed space is reused.`,
		example: `  jobctl --db jobs.db wf prune --before 30d
  jobctl --db jobs.db wf prune --before 2026-03-01 --dry-run`,
		json:  "one object with removed (with --dry-run: how many would be), before (a\n  time), dry_run\n",
		exits: []int{exitNoMatch},
		run:   func(ctx context.Context, _ []string) error { return a.prune(ctx, before, dry) },
	})
	c.Flags().Var(a.momentFlag(&before), "before", "runs that ended before this `TIME`, or longer ago than this age (default now)")
	dryRunFlag(c, &dry)
	return c
}

func (a *app) prune(ctx context.Context, before time.Time, dry bool) error {
	now := a.now()
	if before.IsZero() {
		before = now
	}
	if before.After(now) { // it would also remove runs that end in the meantime, which were not counted
		return misused("wf prune", "the time of --before is in the future")
	}
	if !dry {
		if err := a.askable("wf prune", "remove all that match"); err != nil {
			return err
		}
	}
	v := pruneView{Before: admin.Stamp{Time: before}, DryRun: dry}
	var damaged damage
	err := a.withWorkflows(ctx, func(w admin.Workflows) (err error) {
		v.Removed, err = countEnded(ctx, w, before, &damaged)
		return err
	})
	switch {
	case err != nil:
		return err
	case v.Removed == 0 && damaged.count > 0:
		return a.damaged(&damaged, "run")
	case v.Removed == 0:
		return &failure{exitNoMatch, "no run ended before " + a.clock(before), "'jobctl wf list' shows when runs have ended."}
	}
	if !dry && !a.flags.yes {
		have, them := "1 run ended", "it"
		if v.Removed > 1 {
			have, them = fmt.Sprintf("%d runs ended", v.Removed), "them"
		}
		a.say("%s before %s.", have, a.clock(before))
		if !a.confirm(ctx, fmt.Sprintf("Remove %s for good?", them)) {
			return notConfirmed()
		}
	}
	if !dry {
		if err := a.removeEnded(ctx, &v); err != nil {
			return err
		}
	}
	text := "removed %d\n"
	if dry {
		text = "would be removed: %d; nothing was changed\n"
	}
	if err := a.result(v, text, v.Removed); err != nil {
		return err
	}
	return a.damaged(&damaged, "run")
}

// countEnded returns how many runs ended before a time.
func countEnded(ctx context.Context, w admin.Workflows, before time.Time, damaged *damage) (n int, err error) {
	for run, err := range admin.WorkflowRuns(ctx, w, admin.WorkflowQuery{}) {
		if err != nil {
			return n, err
		}
		if err := damagedRun(&run); err != nil {
			damaged.add(err)
		} else if run.Status.Ended() && run.Ended.Before(before) {
			n++
		}
	}
	return n, nil
}

// removeEnded removes the runs that were counted, and records how many it removed.
func (a *app) removeEnded(ctx context.Context, v *pruneView) error {
	total := int64(v.Removed)
	opened, err := a.changeBehindBar(ctx, "wf prune", "runs", func(queue admin.Admin, report progressFunc) (err error) {
		reporting := driver.WithProgress(ctx, func(done, _ int64) { report(done, max(done, total)) })
		v.Removed, err = queue.Workflows().Prune(reporting, v.Before.Time)
		return err
	})
	if err != nil && opened && ctx.Err() != nil {
		return &failure{exitInterrupted, fmt.Sprintf("interrupted: %d of %d runs were removed", v.Removed, total), "Run the command again for the rest."}
	}
	return a.runFailure(err)
}
