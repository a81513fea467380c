package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// cancel ends jobs, or asks running ones to end, through a change that may be a dry run. The job
// of a workflow run requires force: without its job the run is dead, and nothing undoes its
// steps.
func (d direct) cancel(ctx context.Context, force bool, ids []pawl.ID, change func(...pawl.ID) ([]error, error)) ([]error, error) {
	errs := make([]error, len(ids))
	var todo []pawl.ID
	var at []int
	for i, id := range ids {
		if errs[i] = d.refuseRun(ctx, force, id); errs[i] == nil {
			todo, at = append(todo, id), append(at, i)
		}
	}
	done, err := change(todo...)
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		if errs[i] = done[n]; done[n] != nil || !d.live { // the process that leased the jobs of a stopped app has ended
			continue
		}
		if e, err := d.q.Job(ctx, ids[i]); err == nil && e.State == pawl.Leased {
			errs[i] = fmt.Errorf("job %s: %w", ids[i], ErrCancelRequested)
		}
	}
	return errs, nil
}

// refuseRun rejects the job of an open workflow run.
func (d direct) refuseRun(ctx context.Context, force bool, id pawl.ID) error {
	e, err := d.q.Job(ctx, id)
	runs, kept := d.q.(workflow.Source)
	if force || err != nil || !kept || !strings.HasPrefix(e.Kind, runKind) {
		return nil
	}
	run, err := workflow.Read(runs).Info(ctx, id)
	if err == nil && !run.Status.Ended() {
		return fmt.Errorf("job %s: %w %s:%s", id, ErrWorkflowJob, run.Flow, run.ID)
	}
	return nil
}
