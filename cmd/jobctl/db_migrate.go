package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// migrateView is the object of `db migrate`.
type migrateView struct {
	Path     string `json:"path"`
	Older    bool   `json:"older"`
	Migrated bool   `json:"migrated"`
	DryRun   bool   `json:"dry_run"`
}

func (a *app) dbMigrateCommand() *cobra.Command {
	dry := false
	c := a.command(&spec{
		use: "migrate [--dry-run]", short: "bring a file of an older release to the format of this one",
		long: `Converts a file that an older release has written, after a question: that release
cannot open it from then on. It is one transaction; a crash leaves the old file or
the new one. No other command converts a file; an app of this release does when
it starts. Stop the older app and copy its file before. A copy that is made while
an app writes to the file is broken.`,
		example: "  jobctl --db jobs.db db migrate --dry-run\n  jobctl --db jobs.db db migrate",
		json:    "one object with path, older (it had an older format), migrated, dry_run\n",
		exits:   []int{exitLocked, exitDamaged, exitFormat},
		run:     func(ctx context.Context, _ []string) error { return a.migrate(ctx, dry) },
	})
	dryRunFlag(c, &dry)
	return c
}

func (a *app) migrate(ctx context.Context, dry bool) error {
	if a.flags.addr != "" {
		return usage("db migrate", "a running app has converted its file already; name a file by --db")
	}
	v := migrateView{Path: a.flags.db, DryRun: dry}
	err := a.with(ctx, func(queue admin.Admin) error {
		_, err := queue.Stats(ctx)
		return err
	})
	if v.Older = errors.Is(err, bolt.ErrOlderFormat); err != nil && !v.Older {
		return err
	}
	if v.Older && !dry {
		if err := a.convert(ctx); err != nil {
			return err
		}
		v.Migrated = true
	}
	switch {
	case !a.people():
		return a.print(v)
	case v.Migrated:
		fmt.Fprintf(a.stdout, "%s was converted to the format of this release\n", plain.Text(v.Path))
	case v.Older:
		fmt.Fprintf(a.stdout, "%s has the format of an older release and would be converted; nothing was changed\n", plain.Text(v.Path))
	default:
		fmt.Fprintf(a.stdout, "%s has the format of this release already\n", plain.Text(v.Path))
	}
	return nil
}

// convert asks and converts.
func (a *app) convert(ctx context.Context) error {
	if err := a.askable("db migrate", "convert the file"); err != nil {
		return err
	}
	if !a.flags.yes {
		a.say("%s has the format of an older release. That release cannot open it once it\nis converted.", a.flags.db)
		if !a.confirm(ctx, "Convert it?") {
			return notConfirmed()
		}
	}
	opts := a.fileOptions()
	opts.Upgrade = true
	queue := admin.File(a.flags.db, opts)
	_, err := queue.Reap(ctx) // opens it to write, and finds nothing to do that the open has not done
	return errors.Join(err, queue.Close())
}
