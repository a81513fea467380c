package workflow

import (
	"context"

	"github.com/gopawl/pawl/metrics"
)

var _ metrics.Producer = (*Reader)(nil)

// Families returns pawl_workflow_runs{status}, a gauge of the runs that [Reader.Count] counts, for
// [metrics.Handler]. So the gauge covers the newest 16,384 runs, and up to 16,384 older blocked
// runs.
func (r *Reader) Families(ctx context.Context) ([]metrics.Family, error) {
	c, err := r.Count(ctx)
	if err != nil {
		return nil, err
	}
	runs := metrics.NewFamily("pawl_workflow_runs", "gauge", "Workflow runs by status, of the newest 16384; an active run is neither paused nor blocked.", "status")
	for _, one := range [...]struct {
		status string
		runs   int
	}{
		{"active", c.Active}, {"paused", c.Paused}, {"blocked", c.Blocked}, {"done", c.Done}, {"failed", c.Failed},
		{"cancelled", c.Cancelled}, {"terminated", c.Terminated}, {"damaged", c.Damaged},
	} {
		runs.Add(float64(one.runs), one.status)
	}
	return []metrics.Family{runs}, nil
}
