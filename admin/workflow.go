package admin

import (
	"context"
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
	Journal []workflow.Entry // from RunJournal on

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
