package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// WorkflowQuery is one page of a list of runs.
type WorkflowQuery struct {
	workflow.Filter
	After string // where the page begins: Next of the previous page, "" for the first
	Limit int    // the most runs of a page; 0 means [DefaultLimit], and [MaxLimit] is the maximum
}

// RunDepth is how much of a run is read.
type RunDepth uint8

const (
	RunInfo    RunDepth = iota // the fields in a list
	RunJournal                 // also its journal, without the results in it
	RunValues                  // also all values
)

var depthNames = []string{RunInfo: "info", RunJournal: "journal", RunValues: "values"}

// MarshalText implements encoding.TextMarshaler.
func (d RunDepth) MarshalText() ([]byte, error) { return nameOf(depthNames, int(d)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *RunDepth) UnmarshalText(text []byte) error {
	at, err := named("depth", depthNames, text)
	*d = RunDepth(at)
	return err
}

// runStatuses lists all statuses of runs. A misspelled status is rejected: it would match
// nothing, and the empty result would look like good news.
var runStatuses = []workflow.Status{
	workflow.Running, workflow.Sleeping, workflow.Waiting, workflow.Paused, workflow.Blocked, workflow.Dead,
	workflow.Done, workflow.Failed, workflow.Cancelled, workflow.Terminated,
}

// WorkflowStatuses returns the statuses that a run can have: those of an open run, then those of
// a run that has ended.
func WorkflowStatuses() []workflow.Status { return slices.Clone(runStatuses) }

// WorkflowRun is a run with its journal and values. Values are MessagePack; see
// driver.DecodePayload.
type WorkflowRun struct {
	workflow.Info
	Journal []workflow.Entry      // from RunJournal on
	Streams []workflow.StreamInfo // from RunJournal on

	// Set with RunValues, like the results of the journal.
	Input     []byte
	Output    []byte // nil if there is none
	Signals   []workflow.Pending
	Published map[string][]byte
}

func showRun(ctx context.Context, r *workflow.Reader, run pawl.ID, depth RunDepth) (w *WorkflowRun, err error) {
	w = new(WorkflowRun)
	if w.Info, err = r.Info(ctx, run); err != nil {
		return nil, err
	}
	if depth >= RunJournal {
		if w.Journal, err = r.Journal(ctx, run, depth >= RunValues); err != nil {
			return nil, err
		}
		if w.Streams, err = r.Streams(ctx, run); err != nil {
			return nil, err
		}
	}
	if depth < RunValues {
		return w, nil
	}
	if w.Input, err = r.Input(ctx, run); err != nil {
		return nil, err
	}
	if w.Output, err = r.Output(ctx, run); err != nil {
		return nil, err
	}
	if w.Signals, err = r.Signals(ctx, run); err != nil {
		return nil, err
	}
	if w.Published, err = r.Published(ctx, run); err != nil {
		return nil, err
	}
	return w, nil
}

// The verbs of [Workflows.Do] besides [Cancel]. Cancel asks a run to end, and the run first
// undoes its steps.
const (
	Terminate Verb = "terminate" // the run ends at once, without undoing anything
	Pause     Verb = "pause"     // the run stops after the current step, until Resume
	Resume    Verb = "resume"    // a paused, blocked or dead run continues
)

// RunAction is a verb with its settings.
type RunAction struct {
	Verb   Verb
	Reason string // of Cancel and Terminate, for people

	// If selects the runs that have one of these statuses when the action is carried out. What a
	// list reported earlier does not count. An empty list selects all.
	If []workflow.Status

	// DryRun returns what the action would return now, if reading alone can determine that, and
	// changes nothing.
	DryRun bool
}

type doRunsRequest struct {
	RunAction
	Runs []pawl.ID
}

var opDoRuns, opDryRunRuns = defineTried("workflows/do", "workflows/dry-run", "runs", func(r *doRunsRequest) bool { return r.DryRun }, operation[doRunsRequest, outcomes]{
	do: func(ctx context.Context, a Admin, r *doRunsRequest) (outcomes, error) {
		errs, err := a.Workflows().Do(ctx, r.RunAction, r.Runs...)
		return outcomes{errs}, err
	},
	check: func(r *doRunsRequest, o *outcomes) error { return checkCount(len(o.Errors), len(r.Runs)) },
})

func (w clientRuns) Do(ctx context.Context, a RunAction, runs ...pawl.ID) ([]error, error) {
	if len(runs) > MaxIDs {
		return nil, invalid("runs", "%d of them, one call takes %d", len(runs), MaxIDs)
	}
	o := opDoRuns
	if a.DryRun {
		o = opDryRunRuns
	}
	done, err := ask(ctx, w.c, o, doRunsRequest{a, runs})
	return done.Errors, err
}

// runsAtOnce is how many runs of one Do are changed at a time. They share commits.
const runsAtOnce = 16

func (d directRuns) Do(ctx context.Context, a RunAction, runs ...pawl.ID) ([]error, error) {
	if err := a.check(len(runs)); err != nil {
		return nil, err
	}
	results := make([]error, len(runs))
	AtOnce(len(runs), runsAtOnce, func(i int) {
		if a.DryRun {
			results[i] = d.try(ctx, a, runs[i])
			return
		}
		_, results[i] = changeRun(ctx, d, runs[i], func(e *workflow.Engine) (nothing, error) {
			return nothing{}, a.do(ctx, e, runs[i])
		})
	})
	if err := incomplete(results, a.DryRun, func(i int) string { return fmt.Sprintf("%s of run %s", a.Verb, runs[i]) }); err != nil {
		return nil, err
	}
	return results, nil
}

// try is a dry run of an action on one run.
func (d directRuns) try(ctx context.Context, a RunAction, run pawl.ID) error {
	info, err := readRuns(d, func(r *workflow.Reader) (workflow.Info, error) { return r.Info(ctx, run) })
	switch {
	case err != nil:
		return err
	case info.Status.Ended():
		return fmt.Errorf("run %s: %w", run, workflow.ErrNotRunning)
	case len(a.If) > 0 && !slices.Contains(a.If, info.Status):
		return fmt.Errorf("run %s: %w: it is %s now", run, pawl.ErrNotEligible, info.Status)
	case a.Verb == Pause && info.Cancelling != "":
		return fmt.Errorf("run %s: %w: it is being cancelled or terminated", run, pawl.ErrConflict)
	}
	return nil
}

// check rejects an invalid action.
func (a RunAction) check(runs int) error {
	switch {
	case runs > MaxIDs:
		return invalid("runs", "%d of them, one call takes %d", runs, MaxIDs)
	case a.Reason != "" && a.Verb != Cancel && a.Verb != Terminate:
		return invalid("reason", "only %s and %s take one", Cancel, Terminate)
	case !slices.Contains([]Verb{Cancel, Terminate, Pause, Resume}, a.Verb):
		return invalid("verb", "%q is none of %s, %s, %s, %s", truncate(string(a.Verb)), Cancel, Terminate, Pause, Resume)
	}
	return nil
}

// do requests the change from one run.
func (a RunAction) do(ctx context.Context, e *workflow.Engine, run pawl.ID) error {
	switch a.Verb {
	case Cancel:
		return e.Cancel(ctx, run, a.Reason, a.If...)
	case Terminate:
		return e.Terminate(ctx, run, a.Reason, a.If...)
	case Pause:
		return e.Pause(ctx, run, a.If...)
	}
	return e.Resume(ctx, run, a.If...)
}
