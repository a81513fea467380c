package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/cmd/jobctl/internal/progress"
)

// importing is one `import`.
type importing struct {
	opts   admin.ImportOptions
	create bool
}

// importView is the object of `import`.
type importView struct {
	Jobs    int64 `json:"jobs"`
	Skipped int64 `json:"skipped"`
	Effects int64 `json:"effects"`
	Paused  int64 `json:"paused"`
	Checked int64 `json:"checked"`
	Damaged int64 `json:"damaged"`
	DryRun  bool  `json:"dry_run"`

	Runs        int64 `json:"runs"`
	RunsSkipped int64 `json:"runs_skipped"`

	Schedules        int64 `json:"schedules"`
	SchedulesSkipped int64 `json:"schedules_skipped"`

	Groups        int64 `json:"groups"`
	GroupsSkipped int64 `json:"groups_skipped"`
}

func (a *app) importCommand() *cobra.Command {
	i := &importing{}
	c := a.command(&spec{
		use: "import FILE|- [--keep-ids] [--create]", short: "store the jobs, runs, and schedules of an export", args: 1, complete: files,
		long: `Stores the jobs of an export in their exported states: dead jobs stay dead, records
of successes are kept until their time, waiting jobs wait. A job that was leased
becomes ready. The whole export is checked first, and nothing is stored if anything
is wrong with it. Paused queues are paused before their first job is stored.

Workflow runs are stored completely, before any job, and continue where they were:
stop the app that had them, since otherwise both apps would run them. They keep the
IDs that their starters gave them.

Schedules are stored last, and continue where they were: ticks since the export are
late. Groups are stored after their members, whose counts they take. A schedule or a
group whose name is taken ends the import.

Jobs get new IDs unless --keep-ids is given; then an ID that is taken ends the
import. A run whose FLOW:ID is taken ends it in either case. --skip-existing skips
all of these instead. To continue an interrupted import, run the same command with --keep-ids
and --skip-existing, and without --create.`,
		example: `  jobctl --db new.db import jobs.jsonl --create --keep-ids
  jobctl --db jobs.db import --dry-run - < jobs.jsonl`,
		json: `one object with jobs (stored), skipped, effects (completed idempotency
  keys), paused (queues), checked (sound jobs of the export), damaged (jobs,
  runs, schedules and groups that it only names), dry_run, runs (stored),
  runs_skipped, schedules (stored), schedules_skipped, groups (stored),
  groups_skipped
`,
		exits: []int{exitConflict},
		run:   func(ctx context.Context, args []string) error { return i.run(ctx, a, args) },
	})
	c.Flags().BoolVar(&i.opts.KeepIDs, "keep-ids", false, "store the jobs under their exported IDs")
	c.Flags().BoolVar(&i.opts.SkipExisting, "skip-existing", false, "skip jobs whose ID or unique key, runs whose FLOW:ID, and schedules and groups whose name, is taken")
	c.Flags().BoolVar(&i.create, "create", false, "create the file of --db, or the queue on its server, which must not exist")
	c.Flags().BoolVar(&i.opts.DryRun, "dry-run", false, "check the export, and store nothing")
	return c
}

func (i *importing) run(ctx context.Context, a *app, args []string) error {
	switch {
	case len(args) == 0:
		return usage("import", "name one export, or - for standard input")
	case i.create && a.flags.addr != "":
		return usage("import", "--create creates a queue and needs --db, not --addr")
	}
	from, err := a.input(args[0])
	if err != nil {
		return err
	}
	defer from.Close()
	if i.create && !i.opts.DryRun {
		if err := i.rehearse(ctx, a, args[0], from); err != nil {
			return err
		}
	}
	done, err := i.store(ctx, a, args[0], from)
	if err != nil {
		return i.explained(a, err, &done)
	}
	return i.print(a, &done)
}

// rehearse checks an export before --create creates the file: a truncated export would leave an
// empty file, which would prevent the next attempt from creating it.
func (i *importing) rehearse(ctx context.Context, a *app, name string, from io.ReadSeeker) error {
	dry, other := *i, *a
	dry.opts.DryRun = true
	done, err := dry.store(ctx, &other, name, from)
	if err != nil {
		return dry.explained(&other, err, &done)
	}
	return nil
}

// store stores an export in the queue, whose file it creates on request.
func (i *importing) store(ctx context.Context, a *app, name string, from io.ReadSeeker) (done admin.Imported, err error) {
	remove, err := i.target(ctx, a)
	if err != nil {
		return done, err
	}
	defer remove()
	err = a.with(ctx, func(queue admin.Admin) (err error) {
		verb := "importing "
		if i.opts.DryRun {
			verb = "checking "
		}
		bar := a.bar(verb+name, progress.Bytes)
		defer bar.Stop()
		i.opts.Progress = bar.Set
		done, err = admin.Import(ctx, queue, from, &i.opts)
		return err
	})
	return done, err
}

// input returns a file that can be read twice.
func (a *app) input(name string) (io.ReadSeekCloser, error) {
	if name == "-" {
		return admin.Spool(a.stdin)
	}
	f, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &failure{exitError, fmt.Sprintf("%s: no such file", name), "Name a file that 'jobctl export' wrote."}
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		return f, nil
	}
	defer f.Close()
	if err == nil && info.IsDir() {
		return nil, &failure{exitError, fmt.Sprintf("%s is a folder", name), "Name a file that 'jobctl export' wrote."}
	}
	return admin.Spool(f) // a pipe, as a shell creates for <(...)
}

// target creates the file of --create, or the schema on a server. A dry run creates a temporary
// file.
func (i *importing) target(ctx context.Context, a *app) (remove func(), err error) {
	remove = func() {}
	if !i.create {
		return remove, nil
	}
	path := a.flags.db
	switch _, err := os.Lstat(path); {
	case a.flags.server != "" && i.opts.DryRun:
		if err := a.absentServer(ctx); err != nil {
			return remove, err
		}
	case a.flags.server != "":
		return remove, a.createServer(ctx)
	case err == nil:
		return remove, newFile(path, fs.ErrExist)
	}
	if i.opts.DryRun {
		folder, err := os.MkdirTemp("", "jobctl-import-*")
		if err != nil {
			return remove, err
		}
		remove = func() { _ = os.RemoveAll(folder) }
		path = filepath.Join(folder, "dry-run.db")
		a.flags.db, a.flags.server = path, ""
	}
	q, err := bolt.Open(path, &bolt.Options{Logger: a.logger(), Now: a.now, Insecure: a.flags.insecure})
	if err != nil {
		remove()
		return func() {}, err
	}
	return remove, q.Close()
}

// explained adds how much was stored before an error.
func (i *importing) explained(a *app, err error, done *admin.Imported) error {
	f := a.failure(err)
	switch {
	case errors.Is(err, pawl.ErrInvalid) && f.next == "":
		f.next = "It must be complete and unchanged, as 'jobctl export' wrote it."
	case errors.Is(err, fs.ErrNotExist) && i.create:
		f.text, f.next = fmt.Sprintf("%s: its folder does not exist", a.flags.db), "The folder of the new file must exist."
	case errors.Is(err, fs.ErrNotExist):
		f.next = "Check --db; --create creates a new file."
	}
	if f.code == exitConflict {
		f.next = "--skip-existing skips what exists already."
		if i.opts.KeepIDs {
			f.next = "--skip-existing skips what exists already; without --keep-ids jobs get new IDs."
		}
	}
	if done.Jobs > 0 || done.Runs > 0 || done.Schedules > 0 {
		f.text += fmt.Sprintf("; %s stored before that", transferred(done.Jobs, done.Runs, done.Schedules))
	}
	return f
}

func (i *importing) print(a *app, done *admin.Imported) error {
	if !a.people() {
		return a.print(importView{done.Jobs, done.Skipped, done.Effects, done.Paused, done.Checked, done.Damaged, i.opts.DryRun, done.Runs, done.RunsSkipped,
			done.Schedules, done.SchedulesSkipped, done.Groups, done.GroupsSkipped})
	}
	jobs := "imported %d, skipped %d\n"
	if i.opts.DryRun {
		jobs = "would be imported: %d, skipped: %d; nothing was changed\n"
	}
	fmt.Fprintf(a.stdout, jobs, done.Jobs, done.Skipped)
	others := func(noun string, n, skipped int64) {
		switch {
		case n+skipped == 0:
		case i.opts.DryRun:
			fmt.Fprintf(a.stdout, "%ss that would be imported: %d, skipped: %d\n", noun, n, skipped)
		default:
			fmt.Fprintf(a.stdout, "imported %s, skipped %d\n", plural(int(n), noun), skipped)
		}
	}
	others("workflow run", done.Runs, done.RunsSkipped)
	others("schedule", done.Schedules, done.SchedulesSkipped)
	others("group", done.Groups, done.GroupsSkipped)
	if done.Damaged > 0 {
		a.say("note: %s could not be read during the export, so it does not contain them", plural(int(done.Damaged), "record"))
	}
	if done.Paused > 0 && !i.opts.DryRun {
		a.say("note: %s paused, as in the export", plural(int(done.Paused), "queue"))
	}
	return nil
}
