package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/cmd/jobctl/internal/progress"
)

func (a *app) dbCompactCommand() *cobra.Command {
	return a.command(&spec{
		use: "compact OUT", short: "copy the file without its free pages", args: 1, complete: files,
		long: `Writes the whole content of the file to the new file OUT, without the free pages:
the file of a queue grows and never shrinks. To use it, stop the app and put OUT
in the place of its file; what an app that runs has done meanwhile is not in it.
Of a running app it makes a backup beside OUT first, which goes again.`,
		example: "  jobctl --db jobs.db db compact small.db && mv small.db jobs.db",
		json:    "one object with from, to, size_bytes\n",
		exits:   []int{exitLocked, exitDamaged, exitFormat},
		run: func(ctx context.Context, args []string) error {
			out, err := newName("db compact", args)
			if err != nil {
				return err
			}
			if err := a.compact(ctx, out); err != nil {
				return err
			}
			return a.copied("compacted", out)
		},
	})
}

func (a *app) compact(ctx context.Context, out string) error {
	isLive := false
	err := a.with(ctx, func(queue admin.Admin) (err error) {
		isLive, err = live(ctx, queue)
		return err
	})
	if err != nil {
		return err
	}
	if !isLive {
		return a.compactFile(ctx, a.flags.db, out)
	}
	folder, err := os.MkdirTemp(filepath.Dir(out), ".jobctl-compact-*") // for us alone
	if err != nil {
		return newFile(out, fmt.Errorf("create the file in folder %s: %w", filepath.Dir(out), err))
	}
	copied := filepath.Join(folder, "copy.db")
	err = a.backup(ctx, copied)
	if err == nil {
		err = a.compactFile(ctx, copied, out)
	}
	return errors.Join(err, os.RemoveAll(folder))
}

func (a *app) compactFile(ctx context.Context, from, out string) error {
	r, err := bolt.OpenReader(from)
	if err != nil {
		return err
	}
	ctx, bar := a.barFor(ctx, "compacting "+from, progress.Bytes)
	err = newFile(out, r.Compact(ctx, out))
	bar.Stop()
	return errors.Join(err, r.Close())
}
