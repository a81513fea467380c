package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// enqueuedJobs is what became of jobs that were enqueued, in the order of the jobs.
type enqueuedJobs struct{ Jobs []pawl.Enqueued }

// check requires an answer that fits this many jobs.
func (e enqueuedJobs) check(jobs int) error {
	return checkIDs(e.Jobs, jobs, func(one pawl.Enqueued) pawl.ID { return one.ID })
}

func (c *client) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if _, err := driver.CheckBatch(jobs, pawl.MaxBatchBytes); err != nil {
		return nil, err // the error that the queue would return; JSON cannot express some of the input
	}
	sent := withIDs(jobs)
	done, err := ask(ctx, c, opEnqueue, enqueueRequest{sent})
	if err == nil {
		err = done.check(len(jobs))
	}
	switch {
	case err == nil:
		return done.Jobs, nil
	case !maybeDone(ctx, err):
		return nil, err
	}
	perhaps := make([]pawl.Enqueued, len(sent))
	for i, e := range sent {
		perhaps[i].ID = e.ID
	}
	return perhaps, err
}

// storedJobs is what the queue filled in when it restored jobs, in the order of the jobs.
type storedJobs struct{ Jobs []storedJob }

type storedJob struct {
	ID                 pawl.ID
	Queue, Origin      string
	Created, NotBefore time.Time
	Seq                uint64
}

func storedOf(jobs []*pawl.Envelope) storedJobs {
	s := storedJobs{make([]storedJob, len(jobs))}
	for i, e := range jobs {
		s.Jobs[i] = storedJob{e.ID, e.Queue, e.Origin, e.Created, e.NotBefore, e.Seq}
	}
	return s
}

// complete fills in envelopes as the app did.
func (s storedJobs) complete(jobs []*pawl.Envelope) error {
	if err := checkIDs(s.Jobs, len(jobs), func(one storedJob) pawl.ID { return one.ID }); err != nil {
		return err
	}
	for i, one := range s.Jobs {
		e := jobs[i]
		e.ID, e.Queue, e.Origin, e.Seq = one.ID, one.Queue, one.Origin, one.Seq
		e.Created, e.NotBefore = one.Created, one.NotBefore
	}
	return nil
}

// checkIDs requires outcomes with an ID for this many jobs.
func checkIDs[T any](outcomes []T, jobs int, id func(T) pawl.ID) error {
	if len(outcomes) != jobs {
		return fmt.Errorf("%w: it has outcomes for %d of %d jobs", errGarbled, len(outcomes), jobs)
	}
	for _, one := range outcomes {
		if id(one).IsZero() {
			return fmt.Errorf("%w: it stored a job without an ID", errGarbled)
		}
	}
	return nil
}

// withIDs returns copies of jobs, each with an ID, so that the caller can look the jobs up after
// an error with an unknown outcome.
func withIDs(jobs []*pawl.Envelope) []*pawl.Envelope {
	sent := make([]*pawl.Envelope, len(jobs))
	now := time.Now()
	for i, e := range jobs {
		own := *e
		if own.ID.IsZero() {
			own.ID = pawl.NewID(now)
		}
		sent[i] = &own
	}
	return sent
}
