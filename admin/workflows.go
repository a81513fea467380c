package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// Workflows is what an operator does to workflow runs. The ID of a run is that of its job, which
// is an ordinary job: [Admin.Do] works on it as on any other.
//
// The guarantees of [Admin] apply here too. Errors also match the sentinels of package workflow:
// each method that takes a run returns [workflow.ErrNotFound] if there is none, and each method
// that changes a run returns [workflow.ErrNotRunning] if it has ended. A change is a request to
// the run. In the file of a stopped app it takes effect when the app runs again.
type Workflows interface {
	// List reads one page of runs, in the order in which they were started. A page may have
	// fewer runs than requested, even none, while Next says where to continue. [WorkflowRuns]
	// iterates over all pages.
	List(ctx context.Context, q WorkflowQuery) (workflow.Listing, error)

	// Count counts the runs by status; see [workflow.Counts].
	Count(ctx context.Context) (workflow.Counts, error)

	// Find returns the run of a flow by the ID that its starter gave it.
	Find(ctx context.Context, flow, id string) (pawl.ID, error)

	// Show reads one run in the given depth.
	Show(ctx context.Context, run pawl.ID, depth RunDepth) (*WorkflowRun, error)

	// Items reads up to [MaxLimit] items of a stream of a run, from the item with the number from on; 0 is the first.
	// Their values are MessagePack. It may return fewer than there are: continue after the last until there are none.
	Items(ctx context.Context, run pawl.ID, name string, from uint64) ([]workflow.Item[[]byte], error)

	// Do carries out one action on up to [MaxIDs] runs, each by itself, and returns an error for
	// each run in their order, as [Admin.Do] does for jobs. Nil means done. Besides the errors
	// above, it returns [pawl.ErrNotEligible] for a run that has none of the statuses of
	// RunAction.If when the action is carried out, and [pawl.ErrConflict] for a pause of a run
	// that is being cancelled.
	Do(ctx context.Context, a RunAction, runs ...pawl.ID) ([]error, error)

	// Signal sends a signal. Its payload is MessagePack, for example from [EncodeJSON]. A second
	// signal with the same dedup is dropped; "" disables that. Other errors are
	// workflow.ErrUndeclared, workflow.ErrTooMany and workflow.ErrTooLarge.
	Signal(ctx context.Context, run pawl.ID, name string, payload []byte, dedup string) error

	// Fork starts a new run with the input of a run and its journal up to a step. The new run
	// executes that step itself. From is a step as [workflow.Entry.Step] writes it. An ID that
	// is taken gives [workflow.ErrConflict].
	Fork(ctx context.Context, run pawl.ID, from, newID string) (pawl.ID, error)

	// Verify compares the journal of a run with the code of the app, and changes nothing. A
	// *[workflow.DeterminismError] says where they differ; workflow.ErrNoFlow means that the app
	// has no such flow. The queue of a stopped app, and a [Shared] one, have no code: Verify then
	// reads everything that the run has, and returns [ErrNotLive] if that is valid.
	Verify(ctx context.Context, run pawl.ID) error

	// Prune removes the runs that ended before a time, whatever their retention, and returns how
	// many. It works in portions and reports progress to [driver.WithProgress], with -1 as the
	// total. After an error, including that of ctx, some runs are removed.
	Prune(ctx context.Context, before time.Time) (int, error)

	// Rows reads a part of everything that is stored of a run, and its job, for an [Export]. See
	// [workflow.Reader.Rows].
	Rows(ctx context.Context, run pawl.ID, after string) (workflow.Rows, error)

	// RestoreRows stores parts of runs, all or none, for an [Import]. See
	// [workflow.Engine.RestoreRows].
	RestoreRows(ctx context.Context, parts ...*workflow.Rows) error
}

// directRuns carries out operations on runs in this process. No engine outlives a call.
type directRuns struct{ direct }

// Workflows implements Admin.
func (d direct) Workflows() Workflows { return directRuns{d} }

func readRuns[T any](d directRuns, fn func(*workflow.Reader) (T, error)) (T, error) {
	return using(d.direct, "workflows", func(q workflow.Source) (T, error) { return fn(workflow.Read(q)) })
}

// changeRuns calls fn with an engine.
func changeRuns[T any](d directRuns, fn func(*workflow.Engine) (T, error)) (T, error) {
	return using(d.direct, "workflows", func(q workflow.Store) (T, error) { return fn(workflow.Open(q, nil)) })
}

// changeRun calls fn with an engine. It opens a file for writing only if the file has the run.
func changeRun[T any](ctx context.Context, d directRuns, run pawl.ID, fn func(*workflow.Engine) (T, error)) (none T, err error) {
	if !d.live {
		if _, err := readRuns(d, func(r *workflow.Reader) (workflow.Info, error) { return r.Info(ctx, run) }); err != nil {
			return none, err
		}
	}
	return changeRuns(d, fn)
}

// Workflows implements Admin.
func (c *client) Workflows() Workflows { return clientRuns{c} }

type clientRuns struct{ c *client }

var opRuns = define(operation[WorkflowQuery, workflow.Listing]{
	path: "workflows/list", work: lists, large: func(q *WorkflowQuery) bool { return q.Limit > DefaultLimit },
	do: func(ctx context.Context, a Admin, q *WorkflowQuery) (workflow.Listing, error) {
		return a.Workflows().List(ctx, *q)
	},
	check: func(q *WorkflowQuery, l *workflow.Listing) error {
		return checkList(len(l.Runs), q.Limit, q.After, l.Next)
	},
})

func (w clientRuns) List(ctx context.Context, q WorkflowQuery) (workflow.Listing, error) {
	return ask(ctx, w.c, opRuns, q)
}

func (d directRuns) List(ctx context.Context, q WorkflowQuery) (workflow.Listing, error) {
	limit, err := pageSize(q.Limit)
	if err != nil {
		return workflow.Listing{}, err
	}
	return readRuns(d, func(r *workflow.Reader) (workflow.Listing, error) { return r.List(ctx, q.Filter, q.After, limit) })
}

var opCountRuns = define(operation[nothing, workflow.Counts]{
	path: "workflows/count", work: lists,
	do: func(ctx context.Context, a Admin, _ *nothing) (workflow.Counts, error) {
		return a.Workflows().Count(ctx)
	},
})

func (w clientRuns) Count(ctx context.Context) (workflow.Counts, error) {
	return ask(ctx, w.c, opCountRuns, nothing{})
}

func (d directRuns) Count(ctx context.Context) (workflow.Counts, error) {
	return readRuns(d, func(r *workflow.Reader) (workflow.Counts, error) { return r.Count(ctx) })
}

// runName names a run, in a request or an answer.
type runName struct{ Run pawl.ID }

// checkNamed rejects an answer that names no run.
func checkNamed[Request any](_ *Request, n *runName) error {
	if n.Run.IsZero() {
		return errors.New("it names no run")
	}
	return nil
}

type findRunRequest struct{ Flow, ID string }

var opFindRun = define(operation[findRunRequest, runName]{
	path: "workflows/find",
	do: func(ctx context.Context, a Admin, r *findRunRequest) (runName, error) {
		run, err := a.Workflows().Find(ctx, r.Flow, r.ID)
		return runName{run}, err
	},
	check: checkNamed[findRunRequest],
})

func (w clientRuns) Find(ctx context.Context, flow, id string) (pawl.ID, error) {
	found, err := ask(ctx, w.c, opFindRun, findRunRequest{flow, id})
	return found.Run, err
}

func (d directRuns) Find(ctx context.Context, flow, id string) (pawl.ID, error) {
	return readRuns(d, func(r *workflow.Reader) (pawl.ID, error) { return r.Find(ctx, flow, id) })
}

type showRequest struct {
	Run   pawl.ID
	Depth RunDepth
}

var opShowRun = define(operation[showRequest, *WorkflowRun]{
	path: "workflows/show", work: lists, large: func(r *showRequest) bool { return r.Depth == RunValues },
	do: func(ctx context.Context, a Admin, r *showRequest) (*WorkflowRun, error) {
		return a.Workflows().Show(ctx, r.Run, r.Depth)
	},
	check: func(r *showRequest, w **WorkflowRun) error {
		if *w == nil || (*w).Run != r.Run {
			return errors.New("it has another run, or none")
		}
		return nil
	},
})

func (w clientRuns) Show(ctx context.Context, run pawl.ID, depth RunDepth) (*WorkflowRun, error) {
	return ask(ctx, w.c, opShowRun, showRequest{run, depth})
}

func (d directRuns) Show(ctx context.Context, run pawl.ID, depth RunDepth) (*WorkflowRun, error) {
	return readRuns(d, func(r *workflow.Reader) (*WorkflowRun, error) { return showRun(ctx, r, run, depth) })
}

type signalRequest struct {
	Run     pawl.ID
	Name    string
	Payload *Payload
	Dedup   string
}

var opSignal = defineChange("workflows/signal", func(ctx context.Context, a Admin, r *signalRequest) error {
	payload, err := r.Payload.bytes()
	if err != nil {
		return err
	}
	return a.Workflows().Signal(ctx, r.Run, r.Name, payload, r.Dedup)
})

func (w clientRuns) Signal(ctx context.Context, run pawl.ID, name string, payload []byte, dedup string) error {
	if err := workflow.CheckSignal(name, payload, dedup); err != nil {
		return err
	}
	return send(ctx, w.c, opSignal, signalRequest{run, name, payloadOf(payload, PayloadBase64), dedup})
}

func (d directRuns) Signal(ctx context.Context, run pawl.ID, name string, payload []byte, dedup string) error {
	_, err := changeRun(ctx, d, run, func(e *workflow.Engine) (nothing, error) {
		return nothing{}, e.Send(ctx, run, name, payload, dedup)
	})
	return err
}

type forkRequest struct {
	Run         pawl.ID
	From, NewID string
}

var opFork = define(operation[forkRequest, runName]{
	path: "workflows/fork", changes: true,
	do: func(ctx context.Context, a Admin, r *forkRequest) (runName, error) {
		run, err := a.Workflows().Fork(ctx, r.Run, r.From, r.NewID)
		return runName{run}, err
	},
	check: checkNamed[forkRequest],
})

func (w clientRuns) Fork(ctx context.Context, run pawl.ID, from, newID string) (pawl.ID, error) {
	made, err := ask(ctx, w.c, opFork, forkRequest{run, from, newID})
	return made.Run, err
}

func (d directRuns) Fork(ctx context.Context, run pawl.ID, from, newID string) (pawl.ID, error) {
	return changeRun(ctx, d, run, func(e *workflow.Engine) (pawl.ID, error) { return e.Fork(ctx, run, from, newID) })
}

var opVerify = define(operation[runName, nothing]{
	path: "workflows/verify", work: lists,
	do: func(ctx context.Context, a Admin, r *runName) (nothing, error) {
		return nothing{}, a.Workflows().Verify(ctx, r.Run)
	},
})

func (w clientRuns) Verify(ctx context.Context, run pawl.ID) error {
	return send(ctx, w.c, opVerify, runName{run})
}

func (d directRuns) Verify(ctx context.Context, run pawl.ID) error {
	if d.flows {
		_, err := changeRuns(d, func(e *workflow.Engine) (nothing, error) { return nothing{}, e.Verify(ctx, run) })
		return err
	}
	all, err := d.Show(ctx, run, RunValues)
	switch {
	case err != nil:
		return err
	case all.Status.Ended():
		return fmt.Errorf("run %s: %w", run, workflow.ErrNotRunning)
	}
	for i := range all.Journal {
		if err := DamagedEntry(run, &all.Journal[i]); err != nil {
			return err
		}
	}
	return ErrNotLive
}

// DamagedEntry returns the error of an entry of a journal that cannot be read, or whose result cannot; nil for a sound
// one.
func DamagedEntry(run pawl.ID, e *workflow.Entry) error {
	if e.State == "" || e.State == workflow.EntryDone && e.Error != "" { // its result is damaged
		return fmt.Errorf("run %s, entry %d: %w: %s", run, e.Seq, pawl.ErrCorrupt, e.Error)
	}
	return nil
}

type pruneRequest struct{ Before time.Time }

// pruned is what one request removed. More reports that the request ended before it had removed
// everything.
type pruned struct {
	Removed int
	More    bool
}

// pruneTime is how long one request removes runs. The client repeats the request, so
// interrupting the client ends the work.
const pruneTime = 2 * time.Second

var opPrune = define(operation[pruneRequest, pruned]{
	path: "workflows/prune", changes: true,
	do: func(ctx context.Context, a Admin, r *pruneRequest) (pruned, error) {
		if r.Before.IsZero() {
			return pruned{}, invalid("before", "it has no time")
		}
		portion, cancel := context.WithCancel(ctx)
		defer cancel()
		began := time.Now()
		portion = driver.WithProgress(portion, func(done, _ int64) {
			if done > 0 && time.Since(began) > pruneTime { // each request removes at least one run
				cancel()
			}
		})
		n, err := a.Workflows().Prune(portion, r.Before)
		if err != nil && portion.Err() != nil && ctx.Err() == nil {
			return pruned{n, true}, nil
		}
		return pruned{n, false}, err
	},
	check: func(_ *pruneRequest, p *pruned) error {
		if p.More && p.Removed == 0 { // an app removes at least one run, or fails
			return errors.New("it removed no run, and has more to remove")
		}
		return checkNumber(p.Removed)
	},
})

func (w clientRuns) Prune(ctx context.Context, before time.Time) (n int, err error) {
	progress := driver.ProgressOf(ctx)
	for more := true; more; {
		p, err := ask(ctx, w.c, opPrune, pruneRequest{before})
		if err != nil {
			return n, err
		}
		n, more = n+p.Removed, p.More
		progress(int64(n), -1)
	}
	return n, nil
}

func (d directRuns) Prune(ctx context.Context, before time.Time) (int, error) {
	progress := driver.ProgressOf(ctx)
	return changeRuns(d, func(e *workflow.Engine) (int, error) {
		return e.Prune(ctx, before, func(done int) { progress(int64(done), -1) })
	})
}
