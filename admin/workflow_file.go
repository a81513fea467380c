package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Workflows implements Admin.
func (f *file) Workflows() Workflows { return fileWorkflows{f} }

// fileWorkflows are those of a file: looks work on whatever is open, changes open it to
// write.
type fileWorkflows struct{ f *file }

func (w fileWorkflows) look(fn func(runReader) error) error {
	return w.f.look(func(l looker) error { return fn(runReader{workflow.Read(l)}) })
}

// change carries out one change of a run, of which it looks first: so nothing is opened to
// write for a run that is not there.
func (w fileWorkflows) change(ctx context.Context, run pawl.ID, fn func(Workflows) error) error {
	err := w.look(func(r runReader) error {
		_, err := r.r.Info(ctx, run)
		return err
	})
	if err != nil {
		return err
	}
	return w.f.change(func(l local) error { return fn(l.Workflows()) })
}

func (w fileWorkflows) List(ctx context.Context, q WorkflowQuery) (page workflow.Listing, err error) {
	err = w.look(func(r runReader) error {
		page, err = r.List(ctx, q)
		return err
	})
	return page, err
}

func (w fileWorkflows) Count(ctx context.Context) (c workflow.Counts, err error) {
	err = w.look(func(r runReader) error {
		c, err = r.Count(ctx)
		return err
	})
	return c, err
}

func (w fileWorkflows) Find(ctx context.Context, flow, id string) (run pawl.ID, err error) {
	err = w.look(func(r runReader) error {
		run, err = r.Find(ctx, flow, id)
		return err
	})
	return run, err
}

func (w fileWorkflows) Show(ctx context.Context, run pawl.ID, depth RunDepth) (all *WorkflowRun, err error) {
	err = w.look(func(r runReader) error {
		all, err = r.Show(ctx, run, depth)
		return err
	})
	return all, err
}

func (w fileWorkflows) Signal(ctx context.Context, run pawl.ID, name string, payload []byte, dedup string) error {
	return w.change(ctx, run, func(l Workflows) error { return l.Signal(ctx, run, name, payload, dedup) })
}

func (w fileWorkflows) Cancel(ctx context.Context, run pawl.ID, reason string) error {
	return w.change(ctx, run, func(l Workflows) error { return l.Cancel(ctx, run, reason) })
}

func (w fileWorkflows) Terminate(ctx context.Context, run pawl.ID, reason string) error {
	return w.change(ctx, run, func(l Workflows) error { return l.Terminate(ctx, run, reason) })
}

func (w fileWorkflows) Pause(ctx context.Context, run pawl.ID) error {
	return w.change(ctx, run, func(l Workflows) error { return l.Pause(ctx, run) })
}

func (w fileWorkflows) Resume(ctx context.Context, run pawl.ID) error {
	return w.change(ctx, run, func(l Workflows) error { return l.Resume(ctx, run) })
}

func (w fileWorkflows) Fork(ctx context.Context, run pawl.ID, from, newID string) (forked pawl.ID, err error) {
	err = w.change(ctx, run, func(l Workflows) error {
		forked, err = l.Fork(ctx, run, from, newID)
		return err
	})
	return forked, err
}

// Verify reads everything that a run has. What code would do with it, only its app knows.
func (w fileWorkflows) Verify(ctx context.Context, run pawl.ID) error {
	all, err := w.Show(ctx, run, RunValues)
	switch {
	case err != nil:
		return err
	case all.Status.Ended():
		return fmt.Errorf("run %s: %w", run, workflow.ErrNotRunning)
	}
	for i := range all.Journal {
		if e := &all.Journal[i]; e.State == "" || e.State == workflow.EntryDone && e.Error != "" { // or its result is damaged
			return fmt.Errorf("run %s, entry %d: %w: %s", run, e.Seq, pawl.ErrCorrupt, e.Error)
		}
	}
	return ErrNotLive
}

func (w fileWorkflows) Prune(ctx context.Context, before time.Time) (n int, err error) {
	err = w.f.change(func(l local) error {
		n, err = l.Workflows().Prune(ctx, before)
		return err
	})
	return n, err
}
