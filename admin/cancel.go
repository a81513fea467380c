package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/workflow"
)

// cancel ends jobs, or asks running ones to end, by a change, which may be a dry run. The job
// of a workflow run needs force: its end would leave the run dead with nothing undone.
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
	_, stopped := from.(*bolt.Reader) // what is leased there has no process any more
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

// refuseRun refuses the job of a workflow run that has not ended.
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
