package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/internal/atomicfile"
)

// exportView is the object of `export --to`.
type exportView struct {
	To      string `json:"to"`
	Queues  int64  `json:"queues"`
	Jobs    int64  `json:"jobs"`
	Effects int64  `json:"effects"`
	Damaged int64  `json:"damaged"`
	Runs    int64  `json:"runs"`

	Schedules int64 `json:"schedules"`
	Groups    int64 `json:"groups"`
}

func (a *app) exportCommand() *cobra.Command {
	var f filterFlags
	to := ""
	c := a.command(&spec{
		use: "export [FILTER...] [--to FILE]", short: "write jobs, runs, and schedules as JSON lines for 'import'",
		long: `Writes jobs as JSON lines, with everything needed to store them again unchanged. The
first line is about the export. Then each queue and each job has a line, and, without
filters, so has each schedule, group, and completed idempotency key. The last line has
the counts, so that a truncated export is detected. Each job has the form of 'jobctl job show -o jsonl --payload base64'. While
the app runs, the export is not a snapshot: to export one moment, export a backup.

Workflow runs have their own lines, with everything that the file has about them. A
filter that selects a job also exports its run and the runs that it waits for. A run
that has ended has no job: it is exported if there is no filter except its queue, or
its kind workflow/FLOW. 'jobctl import' describes how runs continue elsewhere.

A job or a run that cannot be read is named in the export, and the exit code is 5.`,
		example: `  jobctl --db jobs.db export > jobs.jsonl
  jobctl --db jobs.db export -s dead --to dead.jsonl`,
		json: "with --to one object with to, queues, jobs, effects, damaged, runs,\n  schedules, groups\n",
		run:  func(ctx context.Context, _ []string) error { return a.export(ctx, &f, to) },
	})
	f.register(a, c)
	c.Flags().Var(textFlag(&to), "to", "write to this new `FILE`, completely or not at all (default: standard output)")
	return c
}

func (a *app) export(ctx context.Context, f *filterFlags, to string) error {
	if to == "-" {
		return usage("export", "--to names a file; without it the export goes to standard output")
	}
	var done admin.Exported
	err := a.with(ctx, func(queue admin.Admin) (err error) {
		if err := f.known(ctx, queue); err != nil {
			return err
		}
		bar := a.bar("exporting "+a.place(), "jobs")
		defer bar.Stop()
		opts := &admin.ExportOptions{Filter: f.filters()[0], Progress: bar.Set}
		write := func(w io.Writer) error {
			done, err = admin.Export(ctx, queue, &harmlessJSON{to: w}, opts)
			return err
		}
		if to == "" {
			return write(a.stdout)
		}
		if err := a.checkNew(ctx, "export", to, queue); err != nil {
			return err
		}
		return newFile(to, atomicfile.Create(to, func(f *os.File) error { return write(f) }))
	})
	switch {
	case err != nil:
		return err
	case to != "" && !a.people():
		err = a.print(exportView{to, done.Queues, done.Jobs, done.Effects, done.Damaged, done.Runs, done.Schedules, done.Groups})
	case to != "":
		fmt.Fprintf(a.stdout, "exported %s to %s\n", transferred(done.Jobs, done.Runs, done.Schedules), plain.Text(to))
	default:
		a.say("exported %s", transferred(done.Jobs, done.Runs, done.Schedules))
	}
	if err != nil {
		return err
	}
	damaged := damage{count: int(done.Damaged)}
	for _, d := range done.Damage[:min(len(done.Damage), shownDamage)] {
		damaged.first = append(damaged.first, d.Err.Error())
	}
	return a.damaged(&damaged, "job")
}

// transferred counts what was transferred. It omits zero runs and zero schedules, which most files have.
func transferred(jobs, runs, schedules int64) string {
	text := plural(int(jobs), "job")
	switch {
	case runs > 0 && schedules > 0:
		return text + ", " + plural(int(runs), "workflow run") + ", and " + plural(int(schedules), "schedule")
	case runs > 0:
		text += " and " + plural(int(runs), "workflow run")
	case schedules > 0:
		text += " and " + plural(int(schedules), "schedule")
	}
	return text
}
