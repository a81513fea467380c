package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/workflow"
)

// cancel ends jobs, or asks running ones to end, through a change that may be a dry run. The job
// of a workflow run requires force: without its job the run is dead, and nothing undoes its
// steps.
func cancel(ctx context.Context, from looker, force bool, ids []pawl.ID, change func(...pawl.ID) ([]error, error)) ([]error, error) {
	errs := make([]error, len(ids))
	var todo []pawl.ID
	var at []int
	for i, id := range ids {
		if errs[i] = refuseRun(ctx, from, force, id); errs[i] == nil {
			todo, at = append(todo, id), append(at, i)
		}
	}
	done, err := change(todo...)
	if err != nil {
		return nil, err
	}
	_, stopped := from.(*bolt.Reader) // the process that leased its jobs has ended
	for n, i := range at {
		if errs[i] = done[n]; done[n] != nil || stopped {
			continue
		}
		if e, err := from.Job(ctx, ids[i]); err == nil && e.State == pawl.Leased {
			errs[i] = fmt.Errorf("job %s: %w", ids[i], ErrCancelRequested)
		}
	}
	return errs, nil
}

// refuseRun rejects the job of an open workflow run.
func refuseRun(ctx context.Context, from looker, force bool, id pawl.ID) error {
	e, err := from.Job(ctx, id)
	if force || err != nil || !strings.HasPrefix(e.Kind, runKind) {
		return nil
	}
	run, err := workflow.Read(from).Info(ctx, id)
	if err == nil && !run.Status.Ended() {
		return fmt.Errorf("job %s: %w %s:%s", id, ErrWorkflowJob, run.Flow, run.ID)
	}
	return nil
}
