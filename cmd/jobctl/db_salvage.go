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

// The buckets that contain the rows of runs and of schedules.
const (
	workflowRows = "pawl.workflow"
	scheduleRows = "pawl.schedule"
)

func (a *app) dbSalvageCommand() *cobra.Command {
	return a.command(&spec{
		use: "salvage FROM TO", short: "copy the sound data of a damaged file to a new file", nofile: true, args: -1, complete: files,
		long: `Reads the damaged file FROM without changing it, and writes its sound data to the
new file TO. Use it if there is no backup, or to find out what a backup lacks. TO
must not exist.

Jobs whose bytes are sound keep their state. A job with missing data becomes a dead
job with reason "corrupt", and so does a job found outside the tree of pages: it may
have been completed long ago, so look at it before you retry it. 'jobctl --db TO dead
list' shows these jobs. The app's own data in the same file has no checksums, so
salvage cannot check it.

Workflow runs are copied like the app's data, in bucket pawl.workflow, but their rows
have checksums: 'jobctl --db TO wf verify' reads the runs that are left. The job of a
lost run becomes a dead job when a worker takes it.

The exit code is 0 if nothing was damaged, and 5 if something was lost or is
uncertain. TO exists in both cases.`,
		example: "  jobctl db salvage jobs.db saved.db\n  jobctl --db saved.db dead list --reason corrupt",
		json: `one object with
  from, to
  jobs: how many are in TO, and of those
  ready, delayed, leased, dead, completed
  kept: unchanged; placed: the state was lost and follows from the record;
  reattached: the record was outside the tree, but a row in the tree confirms
  the job; unreached: dead jobs found outside the tree; no_record and
  no_payload: dead jobs that lost it
  history_lost: entries of histories
  rows_lost: a list of bucket and rows
  app_rows, app_lost: rows of the app and of workflows that were copied, and
  that could not be copied
  damaged_pages: how many
  pages: a list of page, bucket and error, at most one hundred
  meta_page: 0 or 1, null if neither was sound
  older: true if the last transaction is undone
  format_assumed: true if the version of the format is lost
`,
		exits: []int{exitLocked, exitDamaged, exitFormat},
		run:   a.salvage,
	})
}

func (a *app) salvage(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return usage("db salvage", "name a damaged file and a new one: salvage FROM TO")
	}
	from, to := args[0], args[1]
	a = a.aimed(from) // for messages
	if err := a.fileOnly("db salvage", "restore a backup of the server"); err != nil {
		return err
	}
	if err := a.checkNew(ctx, "db salvage", to, nil); err != nil {
		return err
	}
	ctx, bar := a.barFor(ctx, "salvaging "+from, progress.Bytes)
	result, err := bolt.Salvage(ctx, from, to)
	bar.Stop()
	switch {
	case errors.Is(err, bolt.ErrLocked): // even if an app serves it: salvage does not connect to an app
		return &failure{exitLocked, from + " is locked" + holder(err), "Stop the app: a file that is being written cannot be salvaged."}
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
	return &failure{exitDamaged, fmt.Sprintf("%s is damaged; its sound data is in %s", from, to),
		"Keep the damaged file until you have looked at the new one. If it was copied from a\nrunning app, copy it again with 'jobctl db backup'."}
}

// printSalvaged prints what was saved for people: one line for each outcome.
func (a *app) printSalvaged(to string, s *bolt.Salvaged) {
	fmt.Fprintf(a.stdout, "%s: %s\n", plain.Text(to), plural(sum(&s.Counts), "job"))
	for _, line := range []struct {
		n    int
		what string
	}{
		{s.Kept, "unchanged"},
		{s.Reattached, "found outside the tree, but confirmed by a row in it: unchanged"},
		{s.Placed, "lost their state: placed by their records"},
		{s.Unreached, "found outside the tree: dead jobs, perhaps completed long ago"},
		{s.NoRecord, "lost their record: dead jobs"},
		{s.NoPayload, "lost their payload, or it was found outside the tree: dead jobs"},
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
		a.say("note: the newest tree cannot be read; the last transaction is undone")
	}
	if s.NoFormat {
		a.say("note: the version of the format is lost; this release's version was assumed")
	}
	if slices.ContainsFunc(s.Damaged, func(p bolt.DamagedPage) bool { return strings.HasPrefix(p.Bucket, workflowRows) }) {
		a.say("note: workflow runs, or parts of them, may be lost with the pages of %s: 'jobctl --db %s wf verify' reads the rest", workflowRows, to)
	}
	for _, rows := range []string{workflowRows, scheduleRows} {
		if slices.ContainsFunc(slices.Collect(maps.Keys(s.Lost)), func(bucket string) bool { return strings.HasPrefix(bucket, rows+"/") }) {
			a.say("note: damaged rows of %s were copied as they are: 'jobctl --db %s db check' lists them", rows, to)
		}
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

// salvageView is the outcome of a salvage in JSON.
type salvageView struct {
	From          string            `json:"from"`
	To            string            `json:"to"`
	Jobs          int               `json:"jobs"`
	Ready         int               `json:"ready"`
	Delayed       int               `json:"delayed"`
	Leased        int               `json:"leased"`
	Dead          int               `json:"dead"`
	Completed     int               `json:"completed"`
	Kept          int               `json:"kept"`
	Placed        int               `json:"placed"`
	Reattached    int               `json:"reattached"`
	Unreached     int               `json:"unreached"`
	NoRecord      int               `json:"no_record"`
	NoPayload     int               `json:"no_payload"`
	HistoryLost   int               `json:"history_lost"`
	RowsLost      []lostRowsView    `json:"rows_lost"`
	AppRows       int               `json:"app_rows"`
	AppLost       int               `json:"app_lost"`
	DamagedPages  int               `json:"damaged_pages"`
	Pages         []damagedPageView `json:"pages"`
	MetaPage      *int              `json:"meta_page"`
	Older         bool              `json:"older"`
	FormatAssumed bool              `json:"format_assumed"`
}

type lostRowsView struct {
	Bucket string `json:"bucket"`
	Rows   int    `json:"rows"`
}

type damagedPageView struct {
	Page   uint64 `json:"page"`
	Bucket string `json:"bucket"`
	Error  string `json:"error"`
}

func viewOfSalvaged(from, to string, s *bolt.Salvaged) salvageView {
	c := s.Counts
	v := salvageView{
		From: from, To: to,
		Jobs:  sum(&c),
		Ready: c.Ready, Delayed: c.Delayed, Leased: c.Leased, Dead: c.Dead, Completed: c.Completed,
		Kept: s.Kept, Placed: s.Placed, Reattached: s.Reattached, Unreached: s.Unreached, NoRecord: s.NoRecord, NoPayload: s.NoPayload,
		HistoryLost: s.History, RowsLost: []lostRowsView{}, AppRows: s.AppRows, AppLost: s.AppLost,
		DamagedPages: s.Pages, Pages: []damagedPageView{}, Older: s.Older, FormatAssumed: s.NoFormat,
	}
	if s.Meta >= 0 {
		v.MetaPage = &s.Meta
	}
	for _, bucket := range slices.Sorted(maps.Keys(s.Lost)) {
		v.RowsLost = append(v.RowsLost, lostRowsView{bucket, s.Lost[bucket]})
	}
	for _, p := range s.Damaged {
		v.Pages = append(v.Pages, damagedPageView{p.Page, p.Bucket, p.Err.Error()})
	}
	return v
}
