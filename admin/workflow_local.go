package admin

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/workflow"
)

// Workflows implements Admin.
func (l local) Workflows() Workflows { return localWorkflows{runReader{workflow.Read(l.q)}, l.q} }

// localWorkflows are those of an open queue. Nothing of an engine is kept between two calls.
type localWorkflows struct {
	runReader
	q *bolt.Queue
}

func (l localWorkflows) engine() *workflow.Engine { return workflow.Open(l.q, nil) }

func (l localWorkflows) Signal(ctx context.Context, run pawl.ID, name string, payload []byte, dedup string) error {
	return l.engine().Send(ctx, run, name, payload, dedup)
}

func (l localWorkflows) Cancel(ctx context.Context, run pawl.ID, reason string) error {
	return l.engine().Cancel(ctx, run, reason)
}

func (l localWorkflows) Terminate(ctx context.Context, run pawl.ID, reason string) error {
	return l.engine().Terminate(ctx, run, reason)
}

func (l localWorkflows) Pause(ctx context.Context, run pawl.ID) error {
	return l.engine().Pause(ctx, run)
}

func (l localWorkflows) Resume(ctx context.Context, run pawl.ID) error {
	return l.engine().Resume(ctx, run)
}

func (l localWorkflows) Fork(ctx context.Context, run pawl.ID, from, newID string) (pawl.ID, error) {
	return l.engine().Fork(ctx, run, from, newID)
}

func (l localWorkflows) Verify(ctx context.Context, run pawl.ID) error {
	return l.engine().Verify(ctx, run)
}

func (l localWorkflows) Prune(ctx context.Context, before time.Time) (int, error) {
	tell := bolt.ProgressOf(ctx)
	return l.engine().Prune(ctx, before, func(done int) { tell(int64(done), -1) })
}

// runReader are the looks, of an open queue and of a file.
type runReader struct{ r *workflow.Reader }

func (r runReader) List(ctx context.Context, q WorkflowQuery) (workflow.Listing, error) {
	limit, err := q.limit()
	if err != nil {
		return workflow.Listing{}, err
	}
	return r.r.List(ctx, q.Filter, q.After, limit)
}

func (r runReader) Count(ctx context.Context) (workflow.Counts, error) { return r.r.Count(ctx) }

func (r runReader) Find(ctx context.Context, flow, id string) (pawl.ID, error) {
	return r.r.Find(ctx, flow, id)
}

func (r runReader) Show(ctx context.Context, run pawl.ID, depth RunDepth) (*WorkflowRun, error) {
	info, err := r.r.Info(ctx, run)
	w := &WorkflowRun{Info: info}
	if err == nil && depth >= RunJournal {
		w.Journal, err = r.r.Journal(ctx, run, depth >= RunValues)
	}
	switch {
	case err != nil:
		return nil, err
	case depth < RunValues:
		return w, nil
	}
	if w.Input, err = r.r.Input(ctx, run); err != nil {
		return nil, err
	}
	if w.Output, err = r.r.Output(ctx, run); err != nil {
		return nil, err
	}
	if w.Signals, err = r.r.Signals(ctx, run); err != nil {
		return nil, err
	}
	if w.Published, err = r.r.Published(ctx, run); err != nil {
		return nil, err
	}
	return w, nil
}
