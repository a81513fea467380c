package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/cmd/jobctl/internal/progress"
	"github.com/gopawl/pawl/internal/atomicfile"
)

// copyView is the object of `db backup` and `db compact`.
type copyView struct {
	From      string `json:"from"`
	To        string `json:"to"`
	SizeBytes int64  `json:"size_bytes"`
}

func (a *app) dbBackupCommand() *cobra.Command {
	return a.command(&spec{
		use: "backup OUT", short: "copy the file, even while the app runs", args: 1, complete: files,
		long: `Copies the whole file, as of one moment, to the new file OUT, while the queue keeps
working: a running app sends the copy. The copy appears completely or not at all,
and is an ordinary queue file. A plain copy of a file in use is usually broken.`,
		example: "  jobctl --db jobs.db db backup jobs-2026-03-01.db",
		json:    "one object with from, to, size_bytes\n",
		run: func(ctx context.Context, args []string) error {
			out, err := newName("db backup", args)
			if err != nil {
				return err
			}
			if err := a.backup(ctx, out); err != nil {
				return err
			}
			return a.copied("backed up", out)
		},
	})
}

func (a *app) backup(ctx context.Context, out string) error {
	if kind := kindOf(a.flags.server); kind != nil {
		return a.fileOnly("db backup", kind.backup)
	}
	return a.with(ctx, func(queue admin.Admin) error {
		if err := a.checkNew(ctx, "db backup", out, queue); err != nil {
			return err
		}
		ctx, bar := a.barFor(ctx, "backing up "+a.place(), progress.Bytes)
		defer bar.Stop()
		return newFile(out, atomicfile.Create(out, func(f *os.File) error { return queue.Backup(ctx, f) }))
	})
}

// copied reports the new file.
func (a *app) copied(did, out string) error {
	info, err := os.Stat(out)
	if err != nil {
		return err
	}
	return a.result(copyView{a.place(), out, info.Size()},
		"%s %s to %s: %s\n", did, plain.Text(a.place()), plain.Text(out), plain.Size(info.Size()))
}
