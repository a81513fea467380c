package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
)

// reapView is the object of `db reap`.
type reapView struct {
	Reaped int  `json:"reaped"`
	DryRun bool `json:"dry_run"`
}

func (a *app) dbReapCommand() *cobra.Command {
	dry := false
	c := a.command(&spec{
		use: "reap [--dry-run]", short: "take back expired leases",
		long: `Takes back expired leases, as the app does automatically. In the file of a stopped
app no process holds a lease, so it takes back all of them: the jobs become ready
again, with one crash counted for each, or dead if they were cancelled or are past
their deadline. The app does the same when it starts. --dry-run counts the leases.`,
		example: "  jobctl --db jobs.db db reap",
		json:    "one object with reaped (with --dry-run: the number of leases),\n  dry_run\n",
		run:     func(ctx context.Context, _ []string) error { return a.reap(ctx, dry) },
	})
	dryRunFlag(c, &dry)
	return c
}

func (a *app) reap(ctx context.Context, dry bool) error {
	a.note = func(string) {} // the result shows what opening has done
	return a.with(ctx, func(queue admin.Admin) error {
		s, err := queue.Stats(ctx)
		if err != nil {
			return err
		}
		n := 0
		for _, q := range s.Queues {
			n += q.Leased
		}
		if !dry && n > 0 { // without a lease nothing is opened for writing
			if n, err = queue.Reap(ctx); err != nil {
				return err
			}
		}
		text := "reaped %d\n"
		if dry {
			text = "leases: %d; nothing was changed\n"
		}
		return a.result(reapView{n, dry}, text, n)
	})
}
