package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/workflow"
)

// cancel ends a job, or asks a running one to end. The job of a workflow run needs force: its
// end would leave the run dead with nothing undone.
func cancel(ctx context.Context, q *bolt.Queue, id pawl.ID, force bool) error {
	if e, err := q.Job(ctx, id); err == nil && !force && strings.HasPrefix(e.Kind, runKind) {
		run, err := workflow.Read(q).Info(ctx, id)
		if err == nil && !run.Status.Ended() {
			return fmt.Errorf("job %s: %w %s:%s", id, ErrWorkflowJob, run.Flow, run.ID)
		}
	}
	if err := q.Cancel(ctx, id); err != nil {
		return err
	}
	if e, err := q.Job(ctx, id); err == nil && e.State == pawl.Leased {
		return fmt.Errorf("job %s: %w", id, ErrCancelRequested)
	}
	return nil
}
