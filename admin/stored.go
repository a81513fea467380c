package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// enqueuedJobs is what became of jobs that were enqueued, in the order of the jobs.
type enqueuedJobs struct{ Jobs []pawl.Enqueued }

// check rejects outcomes that are not those of the jobs, in their order. Another ID than the job's
// own belongs to the job that has its unique key.
func (r *enqueueRequest) check(done *enqueuedJobs) error {
	if err := checkCount(len(done.Jobs), len(r.Jobs)); err != nil {
		return err
	}
	for i, one := range done.Jobs {
		e := r.Jobs[i]
		existing := e.UniqueKey != "" && e.OnConflict == pawl.UseExisting
		if one.ID.IsZero() || one.Existing && !existing || one.ID != e.ID && !one.Existing && !replaces(e) {
			return fmt.Errorf("its outcome %d is not that of job %s", i, e.ID)
		}
	}
	return nil
}

// replaces reports whether a job may get the ID of another, which it replaces.
func replaces(e *pawl.Envelope) bool { return e.UniqueKey != "" && e.OnConflict == pawl.Replace }

func (c *client) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if _, err := driver.CheckBatch(jobs, pawl.MaxBatchBytes); err != nil {
		return nil, err // the error that the queue would return; JSON cannot express some of the input
	}
	sent := driver.WithIDs(jobs)
	done, err := ask(ctx, c, opEnqueue, enqueueRequest{sent})
	if !errors.Is(err, pawl.ErrUnknownOutcome) {
		return done.Jobs, err
	}
	perhaps := make([]pawl.Enqueued, len(sent))
	for i, e := range sent {
		if !replaces(e) { // the app alone knows which job that was
			perhaps[i].ID = e.ID
		}
	}
	return perhaps, err
}
