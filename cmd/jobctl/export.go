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
}

func (a *app) exportCommand() *cobra.Command {
	var f filterFlags
	to := ""
	c := a.command(&spec{
		use: "export [FILTER...] [--to FILE]", short: "jobs and runs as JSON lines that 'import' stores again",
		long: `Writes jobs with all that is needed to store them again as they stand, as JSON
lines: one for the export, one for each queue, job and idempotency key that is
done (an export without filters has those), and a last one that counts them, so
that an export that was cut is noticed. Each job is as 'jobctl job show -o jsonl
--payload base64' prints it. While the app runs it is no snapshot: export a backup
where one moment of all matters.

Runs of workflows have lines of their own, with all that the file has of them.
With filters a run goes with its job, and the runs that it waits for with it. A run
that has ended has no job: it goes where there is no filter but a queue, or the kind
workflow/FLOW, and it is of that. 'jobctl import' says how runs go on elsewhere.

A job or a run that cannot be read is named in the export; the exit code is 5 then.`,
		example: `  jobctl --db jobs.db export > jobs.jsonl
  jobctl --db jobs.db export -s dead --to dead.jsonl`,
		json:  "with --to one object with to, queues, jobs, effects, damaged, runs\n",
		exits: []int{exitLocked, exitDamaged, exitFormat},
		run:   func(ctx context.Context, _ []string) error { return a.export(ctx, &f, to) },
	})
	f.register(a, c)
	c.Flags().Var(textFlag(&to), "to", "write to this new `FILE`, whole or not at all; else to standard output")
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
		err = a.print(exportView{to, done.Queues, done.Jobs, done.Effects, done.Damaged, done.Runs})
	case to != "":
		fmt.Fprintf(a.stdout, "exported %s to %s\n", jobsAndRuns(done.Jobs, done.Runs), plain.Text(to))
	default:
		a.say("exported %s", jobsAndRuns(done.Jobs, done.Runs))
	}
	if err != nil {
		return err
	}
	damaged := damage{count: int(done.Damaged)}
	for _, d := range done.Damage[:min(len(done.Damage), shownDamage)] {
		damaged.first = append(damaged.first, d.Err.Error())
	}
	return damaged.err()
}

// jobsAndRuns counts what was transferred. Most files have no workflows, so it omits zero runs.
func jobsAndRuns(jobs, runs int64) string {
	text := plural(int(jobs), "job")
	if runs > 0 {
		text += " and " + plural(int(runs), "workflow run")
	}
	return text
}
