package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/cmd/jobctl/internal/progress"
)

// workflowRows is the bucket that contains the rows of runs.
const workflowRows = "pawl.workflow"

func (a *app) dbSalvageCommand() *cobra.Command {
	return a.command(&spec{
		use: "salvage FROM TO", short: "save what is sound in a damaged file into a new one", nofile: true, args: -1, complete: files,
		long: `Reads the damaged file FROM, which stays as it is, and writes what is sound in it
to the new file TO. Use it when there is no backup, or to find out what a backup
lacks. TO must not exist.

Jobs whose bytes are sound stand where they stood. A job of which something is
missing is a dead job of reason "corrupt", and so is one that was found outside
the tree of pages: it may have been done long ago, so look at it before you retry
it. 'jobctl --db TO dead list' shows them. Data of the app in the same file has no
checksums: nobody can tell whether it is what was written.

Runs of workflows are copied as the app's data is, in bucket pawl.workflow, but
their rows have checksums: 'jobctl --db TO wf verify' reads all that are left. The
job of a run that is lost becomes a dead job when a worker takes it.

The exit code is 0 when nothing was damaged, 5 when something was lost or could
not be told; TO is there in both cases.`,
		example: "  jobctl db salvage jobs.db saved.db\n  jobctl --db saved.db dead list --reason corrupt",
		json: `one object with
  from, to
  jobs: how many are in TO, and of those
  ready, delayed, leased, dead, completed
  kept: as they were; placed: where they stood is lost and follows from the
  record; reattached: the record lay outside the tree, and a row in it vouches
  for the job; stray: dead jobs found outside the tree; no_record and
  no_payload: dead jobs of which that is lost
  history_lost: entries of histories
  rows_lost: a list of bucket and rows
  app_rows, app_lost: rows of the app and of workflows that were copied, and
  that could not be
  damaged_pages: how many
  pages: a list of page, bucket and error, the first hundred of them
  meta_page: 0 or 1, null when none was sound
  older: true when what the last transaction did is undone
  format_assumed: true when the version of the format is lost
`,
		exits: []int{exitLocked, exitDamaged, exitFormat},
		run:   a.salvage,
	})
}

func (a *app) salvage(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return usage("db salvage", "a damaged file and a new one must be named: salvage FROM TO")
	}
	from, to := args[0], args[1]
	a.flags.db, a.flags.addr = from, "" // for messages
	if err := a.checkNew(ctx, "db salvage", to, nil); err != nil {
		return err
	}
	ctx, bar := a.barFor(ctx, "salvaging "+from, progress.Bytes)
	result, err := bolt.Salvage(ctx, from, to)
	bar.Stop()
	switch {
	case errors.Is(err, bolt.ErrLocked): // whether or not an app serves it: salvage does not ask
		return &failure{exitLocked, from + " is locked" + holder(err), "Stop the app: no file is salvaged while somebody writes to it."}
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrPermission):
		return newFile(to, err)
	case errors.Is(err, fs.ErrNotExist):
		return &failure{exitError, err.Error(), "Check both names; the folder of the new file must exist."}
	case errors.Is(err, pawl.ErrCorrupt):
		return &failure{exitDamaged, err.Error(), "Keep a copy of the file, and restore a backup."}
	case err != nil:
		return err
	}
	if a.people() {
		a.printSalvaged(to, &result)
	} else if err := a.print(viewOfSalvaged(from, to, &result)); err != nil {
		return err
	}
	if result.Sound() {
		return nil
	}
	return &failure{exitDamaged, fmt.Sprintf("%s is damaged; what is sound is in %s", from, to),
		"Keep the damaged file until you have looked at the new one. If it was copied from a\nrunning app, copy it again by 'jobctl db backup'."}
}

// printSalvaged prints what was saved for people: one line for each outcome.
func (a *app) printSalvaged(to string, s *bolt.Salvaged) {
	fmt.Fprintf(a.stdout, "%s: %s\n", plain.Text(to), plural(sum(&s.Counts), "job"))
	for _, line := range []struct {
		n    int
		what string
	}{
		{s.Kept, "as they were"},
		{s.Reattached, "found outside the tree, and vouched for by a row in it: as they were"},
		{s.Placed, "have lost where they stood: placed as their records say"},
		{s.Stray, "found outside the tree: dead jobs, perhaps done long ago"},
		{s.NoRecord, "have lost their record: dead jobs"},
		{s.NoPayload, "have lost their payload, or it was found outside the tree: dead jobs"},
		{s.History, "entries of histories are lost"},
		{s.AppRows, "rows of the app's data and of workflows were copied; the app's have no checksums"},
		{s.AppLost, "rows or buckets of the app's data and of workflows are lost"},
	} {
		if line.n > 0 {
			fmt.Fprintf(a.stdout, "%8d %s\n", line.n, line.what)
		}
	}
	for _, bucket := range slices.Sorted(maps.Keys(s.Lost)) {
		fmt.Fprintf(a.stdout, "%8d rows of bucket %s were damaged or contradict others\n", s.Lost[bucket], plain.Text(bucket))
	}
	if s.Meta < 0 {
		a.say("note: no meta page is sound; all pages were searched")
	}
	if s.Older {
		a.say("note: the newest tree cannot be read; what the last transaction did is undone")
	}
	if s.NoFormat {
		a.say("note: the version of the format is lost; that of this release was assumed")
	}
	if slices.ContainsFunc(s.Damaged, func(p bolt.DamagedPage) bool { return strings.HasPrefix(p.Bucket, workflowRows) }) {
		a.say("note: runs of workflows, or parts of them, may be lost with the pages of %s: 'jobctl --db %s wf verify' reads those that are left", workflowRows, to)
	}
	if s.Pages == 0 {
		return
	}
	t := table{out: a.stdout, paint: a.colors(), columns: []column{{title: "PAGE", right: true}, {title: "BUCKET"}, {title: "DAMAGE"}}}
	for _, p := range s.Damaged {
		t.add(strconv.FormatUint(p.Page, 10), cell(p.Bucket, nameWidth), plain.Text(p.Err.Error()))
	}
	t.flush()
	if more := s.Pages - len(s.Damaged); more > 0 {
		a.say("and %s more", plural(more, "damaged page"))
	}
}
