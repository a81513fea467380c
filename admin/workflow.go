package admin

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Workflows is what an operator does to the runs of workflows. A run is named by the ID of
// its job, which is an ordinary one: what [Admin.Do] does to a job it does to that of a run.
//
// What [Admin] promises for its methods holds for these too. Errors match the sentinels of
// package workflow besides: all methods that take a run give [workflow.ErrNotFound] where
// there is none, and those that change one [workflow.ErrNotRunning] where it has ended. A
// change is a request to the run: over the file of a stopped app it takes effect when the app
// runs again.
type Workflows interface {
	// List reads one page of runs, in the order in which they were started. A page may have
	// fewer runs than asked for, even none, while Next says that there are more places to
	// look at. [WorkflowRuns] iterates over all pages.
	List(ctx context.Context, q WorkflowQuery) (workflow.Listing, error)

	// Count counts the runs by status, for a glance: see [workflow.Counts].
	Count(ctx context.Context) (workflow.Counts, error)

	// Find is the run that the ID of a starter names among those of a flow.
	Find(ctx context.Context, flow, id string) (pawl.ID, error)

	// Show reads one run, as much of it as was asked for.
	Show(ctx context.Context, run pawl.ID, depth RunDepth) (*WorkflowRun, error)

	// Signal sends a signal. Its payload is MessagePack, as [EncodeJSON] makes it of JSON. A
	// second one of the same dedup is not sent; "" is none. Errors besides:
	// workflow.ErrUndeclared, workflow.ErrTooMany, workflow.ErrTooLarge.
	Signal(ctx context.Context, run pawl.ID, name string, payload []byte, dedup string) error

	// Cancel asks a run to end. What it has to undo it undoes before that.
	Cancel(ctx context.Context, run pawl.ID, reason string) error

	// Terminate ends a run at once. Nothing is undone.
	Terminate(ctx context.Context, run pawl.ID, reason string) error

	// Pause stops a run behind the step that is under way, until Resume.
	Pause(ctx context.Context, run pawl.ID) error

	// Resume ends a pause, tries a run again that is blocked, and brings back one whose job
	// is a dead letter.
	Resume(ctx context.Context, run pawl.ID) error

	// Fork starts a run of its own, with the input of a run and its journal up to a step,
	// which is the first that the new one makes itself. From is a step as
	// [workflow.Entry.Step] writes it. An ID that is taken gives [workflow.ErrConflict].
	Fork(ctx context.Context, run pawl.ID, from, newID string) (pawl.ID, error)

	// Verify compares the journal of a run with the code of the app, and changes nothing. A
	// *[workflow.DeterminismError] says where they differ; workflow.ErrNoFlow, that the app
	// has no such flow. Over the file of a stopped app there is no code: it reads all that
	// the run has, and when that is sound the error is [ErrNotLive].
	Verify(ctx context.Context, run pawl.ID) error

	// Prune removes the runs that ended before a time, whatever their retention, and returns
	// how many. It works in portions, and tells its progress to [bolt.WithProgress], with -1
	// as the total: after an error, that of ctx too, some have been removed.
	Prune(ctx context.Context, before time.Time) (int, error)

	// Rows reads a part of all that is stored of a run, and its job: for an [Export]. See
	// [workflow.Reader.Rows].
	Rows(ctx context.Context, run pawl.ID, after string) (workflow.Rows, error)

	// RestoreRows stores parts of runs, all or none: for an [Import]. See
	// [workflow.Engine.RestoreRows].
	RestoreRows(ctx context.Context, parts ...*workflow.Rows) error
}

// WorkflowQuery is one page of a list of runs.
type WorkflowQuery struct {
	workflow.Filter
	After string // where the page begins: Next of the one before, "" for the first
	Limit int    // the most runs of a page; 0 means [DefaultLimit], and more than [MaxLimit] are never given
}

// RunDepth is how much of a run is read.
type RunDepth uint8

const (
	RunInfo    RunDepth = iota // what a list has of it
	RunJournal                 // and its journal, without the results in it
	RunValues                  // and all values
)

// WorkflowRun is a run with what it has. Values are MessagePack; see pawl.DecodePayload.
type WorkflowRun struct {
	workflow.Info
	Journal []workflow.Entry // from RunJournal on

	// These are there with RunValues, as are the results of the journal.
	Input     []byte
	Output    []byte // nil where there is none
	Signals   []workflow.Pending
	Published map[string][]byte
}
