package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/workflow"
)

func (a *app) wfShowCommand() *cobra.Command {
	return a.command(&spec{
		use: "show REF [-v]", short: "everything about one run", args: 1, ids: true,
		long: refText + `

Prints a run, its journal, which lists what it did step by step, and what it waits for.
With -v it prints the values too: its input and output, the result of each step, its
unread signals, and what it has published. -o json always includes them. 'jobctl job
show' shows the job of a run.`,
		example: `  jobctl --db jobs.db wf show order:1042
  jobctl --db jobs.db wf show 01902a3b-7a40-7000-8000-0123456789ab -v`,
		json: "one object with\n" + runFields + `  journal: a list of seq, step (as --from of a fork takes it), scope, name,
    occurrence, kind (step, step-tx, sleep, wait, select, child, race, cancel,
    all, version, undo, branch, each or decide), state (pending, done, failed or
    begun), attempts, started_at, finished_at (times), took (a duration),
    due_at (a time: when it continues by itself), error, bytes (of the result),
    build, child (a run), result (a value)
  streams: a list of name, first, last (numbers of items), bytes
  input, output (values)
  signals: a list of name, number, and the fields of a value
  published: a list of the same, with 0 as number
A value is an object with size_bytes, encoding (messagepack or unknown), value
(as JSON, as in 'jobctl job show'), base64, hex.
`,
		exits:    []int{exitNoMatch},
		complete: a.completeRefs(1),
		run:      func(ctx context.Context, args []string) error { return a.showRun(ctx, args) },
	})
}

func (a *app) showRun(ctx context.Context, args []string) error {
	r, err := oneRef("wf show", args)
	if err != nil {
		return err
	}
	depth := admin.RunJournal
	switch {
	case a.flags.output == "ids":
		depth = admin.RunInfo
	case a.flags.verbose || !a.people():
		depth = admin.RunValues
	}
	var w *admin.WorkflowRun
	var job admin.JobOfRun
	err = a.runFailure(a.with(ctx, func(queue admin.Admin) error {
		all := queue.Workflows()
		run, err := r.find(ctx, all)
		if err == nil {
			w, err = all.Show(ctx, run, depth)
		}
		if err == nil && a.people() {
			job, err = admin.LookAtJob(ctx, queue, &w.Info)
		}
		return err
	}))
	switch {
	case err != nil:
		return err
	case a.flags.output == "ids":
		fmt.Fprintln(a.stdout, w.Run)
		return nil
	case !a.people():
		err = a.print(admin.WorkflowDetailOf(w, admin.PayloadAuto))
	default:
		a.showRunFacts(&w.Info, job)
		a.showJournal(w.Journal)
		for _, s := range w.Streams { // 'jobctl wf stream' prints the items
			a.fact("stream", "%s, items %d to %d, %s", plain.Text(s.Name), s.First, s.Last, plain.Size(s.Bytes))
		}
		a.showWaits(w.WaitsFor(job, a.moment))
		if depth == admin.RunValues {
			a.showValues(w)
		}
	}
	if err == nil {
		err = a.damagedEntries(w)
	}
	return err
}

func (a *app) showRunFacts(run *workflow.Info, job admin.JobOfRun) {
	a.fact("run", "%s", run.Run)
	a.fact("flow", "%s", plain.Text(run.Flow))
	a.fact("id", "%s", plain.Text(run.ID))
	a.textFact("key", run.Key)
	a.fact("status", "%s", statusOf(run))
	if run.Cancelling != "" {
		fmt.Fprintf(a.stdout, "cancel requested: %s\n", plain.Text(run.Cancelling))
	}
	if run.Error != "" {
		a.fact("error", "%s", escapeLines(run.Error, strings.Repeat(" ", 12)))
	}
	a.showJobOfRun(run, job)
	a.fact("queue", "%s", plain.Text(run.Queue))
	a.fact("build", "%s", orDash(plain.Text(run.Build)))
	a.fact("created", "%s", a.moment(run.Created))
	a.timeFact("deadline", run.Deadline)
	kept := "forever"
	switch days := run.Retain / (24 * time.Hour); {
	case run.Retain <= 0:
	case run.Retain == days*24*time.Hour:
		kept = fmt.Sprintf("for %dd", days)
	default:
		kept = "for " + run.Retain.String()
	}
	if run.Status.Ended() {
		a.fact("ended", "%s", a.moment(run.Ended))
	} else {
		kept += " once it has ended"
	}
	a.fact("kept", "%s", kept)
	for _, name := range slices.Sorted(maps.Keys(run.Attributes)) {
		a.fact("attribute", "%s=%s", plain.Text(name), plain.Text(run.Attributes[name]))
	}
	if run.Restarts > 0 {
		a.fact("restarts", "%d", run.Restarts)
	}
	if !run.Parent.IsZero() {
		a.fact("parent", "%s", run.Parent)
	}
	if !run.Forked.IsZero() {
		a.fact("forked from", "%s", run.Forked)
	}
	unread := fmt.Sprintf("%d unread", run.Unread)
	if run.Unread > 0 && !a.flags.verbose { // a signal with another name than expected may be a mistake
		unread += "; -v has their names"
	}
	a.fact("signals", "%s", unread)
}

// showJournal prints the timeline.
func (a *app) showJournal(journal []workflow.Entry) {
	if len(journal) == 0 {
		a.fact("journal", "no step yet")
		return
	}
	a.fact("journal", "%s", plural(len(journal), "step"))
	columns := []column{
		{title: "SEQ", right: true}, {title: "STEP", cut: middle}, {title: "KIND"}, {title: "ATTEMPTS", right: true},
		{title: "STARTED", spare: 2}, {title: "TOOK", right: true}, {title: "BYTES", right: true, spare: 1},
		{title: "STATE", color: entryColors.of}, {title: "LAST ERROR", cut: end},
	}
	if a.wide() {
		columns = append(columns, left("BUILD", "CHILD")...)
	}
	t := a.table(columns...)
	for i := range journal {
		e := &journal[i]
		if e.State == "" { // it is unreadable
			t.add(fmt.Sprint(e.Seq), "-", "-", "-", "-", "-", "-", "damaged", firstLine(e.Error, errorWidth))
			continue
		}
		started, took, failed, child := "-", "-", "", "-"
		if !e.Child.IsZero() {
			child = e.Child.String()
		}
		if !e.Started.IsZero() {
			if started = a.clock(e.Started); !e.Finished.IsZero() {
				took = short(e.Finished.Sub(e.Started))
			}
		}
		if e.Error != "" {
			failed = firstLine(e.Error, errorWidth)
		}
		t.add(fmt.Sprint(e.Seq), cell(e.Step(), nameWidth), string(e.Kind), fmt.Sprint(e.Attempts), started, took, fmt.Sprint(e.Bytes), string(e.State), failed,
			orDash(cell(e.Build, nameWidth)), child)
	}
	t.flush()
}

// short returns a duration in few digits.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// showWaits prints what a run waits for. It reports whether there is anything.
func (a *app) showWaits(all []string) bool {
	for i, each := range all {
		if i == 0 {
			fmt.Fprintln(a.stdout, "waits for")
		}
		fmt.Fprintf(a.stdout, "  %s\n", plain.Text(each))
	}
	return len(all) > 0
}

// showValues prints all values of a run.
func (a *app) showValues(w *admin.WorkflowRun) {
	a.showValue("input", w.Input)
	for i := range w.Journal {
		if e := &w.Journal[i]; e.Result != nil {
			a.showValue("result of "+plain.Text(e.Step()), e.Result)
		}
	}
	for _, s := range w.Signals {
		name := fmt.Sprintf("signal %s, number %d", plain.Text(s.Name), s.N)
		if s.Payload == nil {
			fmt.Fprintf(a.stdout, "%s, %s, not read\n", name, plural(s.Bytes, "byte"))
			continue
		}
		a.showValue(name, s.Payload)
	}
	for _, key := range slices.Sorted(maps.Keys(w.Published)) {
		a.showValue("published "+plain.Text(key), w.Published[key])
	}
	if w.Output != nil {
		a.showValue("output", w.Output)
	}
}

// showValue prints one value below a line with its name.
func (a *app) showValue(name string, value []byte) {
	if workflow.Encoded(value) {
		fmt.Fprintf(a.stdout, "%s, %s, encoded by the codec of the app\n", name, plural(len(value), "byte"))
		return
	}
	fmt.Fprintf(a.stdout, "%s, %s\n", name, plural(len(value), "byte"))
	text, whole, err := admin.DecodeJSON(value, 4*shownPayload)
	if err != nil {
		a.showHex(value)
		return
	}
	a.showJSON(text, whole)
}

// damagedEntries returns the error of a run whose journal is not fully readable.
func (a *app) damagedEntries(w *admin.WorkflowRun) error {
	var d damage
	for i := range w.Journal {
		if err := admin.DamagedEntry(w.Run, &w.Journal[i]); err != nil {
			d.add(err)
		}
	}
	return a.damaged(&d, "step")
}

// entryColors are the colors of the states of journal entries.
var entryColors = colors{string(workflow.EntryFailed): red, "damaged": red, string(workflow.EntryPending): yellow}
