package top

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/workflow"
)

// runStatuses are the statuses of runs in the order of the pane: those that need attention first.
var runStatuses = []workflow.Status{
	workflow.Blocked, workflow.Dead, workflow.Paused, workflow.Failed, workflow.Running, workflow.Waiting, workflow.Sleeping,
	workflow.Cancelled, workflow.Terminated, workflow.Done,
}

// openRuns returns how many runs have not ended.
func openRuns(c workflow.Counts) int { return c.Active + c.Paused + c.Blocked + c.Damaged }

// runs reads one page of runs, status after status. An unreadable run has no status, and is
// listed with those of the first.
func (w want) runs(ctx context.Context, all admin.Workflows) (p page, err error) {
	err = w.scan(&p, len(runStatuses), len(runStatuses), math.MaxInt, func(at cursor) (string, error) {
		listing, err := all.List(ctx, admin.WorkflowQuery{
			Filter: workflow.Filter{Status: runStatuses[at.state]}, After: at.after, Limit: w.rows - len(p.rows),
		})
		if err != nil {
			return "", err
		}
		p.looked += len(listing.Runs)
		for i := range listing.Runs {
			if run := &listing.Runs[i]; w.filter.matchesRun(run) {
				p.rows = append(p.rows, row{Listed: pawl.Listed{Job: &pawl.Envelope{ID: run.Run}}, run: run})
			}
		}
		return listing.Next, nil
	})
	return p, err
}

// matchesRun reports whether a run has the queue, the kind of its job and all the words.
func (f filter) matchesRun(run *workflow.Info) bool {
	return (f.queue == "" || f.queue == run.Queue) && (f.kind == "" || f.kind == workflow.KindPrefix+run.Flow) &&
		f.hasWords(run.Flow, run.ID, run.Run.String(), run.Queue, string(run.Status), run.Error)
}

var runColumns = []column{
	{title: "RUN", least: shortID, rank: 5},
	{title: "FLOW", least: 8},
	{title: "ID", least: 8},
	{title: "STATUS", least: 10},
	{title: "STEPS", right: true, least: 5, rank: 4},
	{title: "AGE", right: true, least: 6, rank: 1},
	{title: "GOES ON", least: 8, rank: 3},
	{title: "LAST ERROR", least: 12, rank: 2},
}

// runRow returns a run for the columns above.
func (m *model) runRow(run *workflow.Info) []cell {
	status := cell{string(run.Status), green}
	switch run.Status {
	case workflow.Blocked, workflow.Dead, workflow.Failed:
		status.style = red
	case workflow.Running:
	case workflow.Sleeping, workflow.Waiting, workflow.Paused:
		status.style = yellow
	default:
		status.style = unstyled
	}
	if run.Cancelling != "" {
		status.text += ", cancel requested"
	}
	due := "-"
	if !run.Due.IsZero() && !run.Status.Ended() {
		due = distance(m.at, run.Due)
	}
	return []cell{
		text(shortened(run.Run)), text(run.Flow), text(run.ID), status, text(fmt.Sprint(run.Steps)),
		text(plain.Span(m.at.Sub(run.Created))), text(due), {firstLine(run.Error), faint},
	}
}

// showRun sets the lines for a run.
func (d *detail) showRun(run *admin.WorkflowRun, at time.Time, utc bool) {
	d.run = &run.Info
	w := writer{at: at, utc: utc}
	w.fact("run", "%s", run.Run)
	w.fact("flow", "%s", run.Flow)
	w.fact("id", "%s", run.ID)
	w.fact("status", "%s", run.Status)
	if run.Cancelling != "" {
		w.line("cancel requested: %s", run.Cancelling)
	}
	w.fact("queue", "%s", run.Queue)
	w.fact("build", "%s", run.Build)
	w.fact("created", "%s", w.moment(run.Created))
	w.timeFact("ended", run.Ended)
	w.timeFact("goes on", run.Due)
	if len(run.Waits) > 0 {
		w.fact("waits for", "signal %s", strings.Join(run.Waits, ", "))
	}
	w.fact("signals", "%d unread", run.Unread)
	if run.Error != "" {
		w.line("error")
		w.text("  ", run.Error)
	}
	w.fact("journal", "%d steps", len(run.Journal))
	for i := range run.Journal {
		e := &run.Journal[i]
		took := ""
		if !e.Finished.IsZero() && !e.Started.IsZero() {
			took = "  took " + e.Finished.Sub(e.Started).String()
		}
		w.line("  %3d  %-7s  %-8s  %s%s", e.Seq, e.State, e.Kind, e.Step(), took)
		if e.Error != "" {
			w.line("       %s", firstLine(e.Error))
		}
	}
	d.lines = w.lines
}
