package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/cmd/jobctl/internal/progress"
)

func (a *app) dbCompactCommand() *cobra.Command {
	replace := false
	c := a.command(&spec{
		use: "compact OUT|--replace", short: "remove the free pages from a stopped app's file", args: 1, complete: files,
		long: `Writes the content of the file, without its free pages, to the new file OUT, or with
--replace over the file itself. A queue file otherwise never shrinks. The app must
be stopped: a file that replaces a running app's file lacks the app's later changes,
and the app stops when it notices.

--replace holds the file's lock, so no app can start in between. It keeps the mode
and the owner. After an interruption the file is either the old one or the new one.`,
		example: "  jobctl --db jobs.db db compact --replace",
		json:    "one object with from, to, size_bytes\n",
		run: func(ctx context.Context, args []string) error {
			if err := a.fileOnly("db compact", "the server does it by itself"); err != nil {
				return err
			}
			if !replace {
				return a.compactTo(ctx, args)
			}
			if len(args) > 0 {
				return usage("db compact", "OUT and --replace were given; choose one")
			}
			return a.compactInPlace(ctx)
		},
	})
	c.Flags().BoolVar(&replace, "replace", false, "replace the file with the compact one")
	return c
}

// compactTo creates a new file.
func (a *app) compactTo(ctx context.Context, args []string) error {
	out, err := newName("db compact", args)
	if err != nil {
		return err
	}
	if err := a.requireStopped(ctx); err != nil {
		return err
	}
	if err := a.checkNew(ctx, "db compact", out, nil); err != nil {
		return err
	}
	r, err := bolt.OpenReader(a.flags.db)
	if err != nil {
		return err
	}
	ctx, bar := a.barFor(ctx, "compacting "+a.flags.db, progress.Bytes)
	err = newFile(out, r.Compact(ctx, out))
	bar.Stop()
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	return a.copied("compacted", out)
}

// compactInPlace replaces the file.
func (a *app) compactInPlace(ctx context.Context) error {
	if err := a.requireStopped(ctx); err != nil {
		return err
	}
	before, err := os.Stat(a.flags.db)
	if err != nil {
		return err
	}
	barred, bar := a.barFor(ctx, "compacting "+a.flags.db, progress.Bytes)
	err = bolt.CompactInPlace(barred, a.flags.db, &bolt.Options{Insecure: a.flags.insecure, Logger: a.logger()})
	bar.Stop()
	if err != nil {
		return err
	}
	after, err := os.Stat(a.flags.db)
	if err != nil {
		return err
	}
	return a.result(copyView{a.place(), a.place(), after.Size()},
		"compacted %s in place: %s, was %s\n", plain.Text(a.place()), plain.Size(after.Size()), plain.Size(before.Size()))
}

// requireStopped rejects a file that an app has open.
func (a *app) requireStopped(ctx context.Context) error {
	if a.flags.addr != "" {
		return usage("db compact", "only the file of a stopped app can be compacted; name it with --db")
	}
	return a.with(ctx, func(queue admin.Admin) error {
		s, err := queue.Stats(ctx)
		if err != nil || s.Process == nil {
			return err
		}
		return &failure{exitLocked,
			fmt.Sprintf("%s is in use by pid %d (%s)", a.flags.db, s.Process.PID, plain.Text(s.Process.Name)),
			"Stop the app first: a compact file would lack its later changes. To copy the file of\na running app, use 'jobctl db backup'."}
	})
}
