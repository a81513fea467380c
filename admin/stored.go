package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// storedJobs is what the queue filled in when it stored jobs, in the order of the jobs.
type storedJobs struct{ Jobs []storedJob }

type storedJob struct {
	ID                 pawl.ID
	Queue, Origin      string
	Created, NotBefore time.Time
	Seq                uint64
	Existing           bool
}

func storedOf(jobs []*pawl.Envelope) storedJobs {
	s := storedJobs{make([]storedJob, len(jobs))}
	for i, e := range jobs {
		s.Jobs[i] = storedJob{e.ID, e.Queue, e.Origin, e.Created, e.NotBefore, e.Seq, e.Existing}
	}
	return s
}

// complete fills in envelopes as the app did.
func (s storedJobs) complete(jobs []*pawl.Envelope) error {
	if len(s.Jobs) != len(jobs) {
		return fmt.Errorf("%w: it has outcomes for %d of %d jobs", errGarbled, len(s.Jobs), len(jobs))
	}
	for _, one := range s.Jobs {
		if one.ID.IsZero() {
			return fmt.Errorf("%w: it stored a job without an ID", errGarbled)
		}
	}
	for i, one := range s.Jobs {
		e := jobs[i]
		e.ID, e.Queue, e.Origin, e.Seq, e.Existing = one.ID, one.Queue, one.Origin, one.Seq, one.Existing
		e.Created, e.NotBefore = one.Created, one.NotBefore
	}
	return nil
}

// store sends copies of jobs, each with an ID, and completes the jobs. After an error with an
// unknown outcome the jobs have these IDs, so that the caller can look them up.
func (c *client) store(ctx context.Context, jobs []*pawl.Envelope, send func([]*pawl.Envelope) (storedJobs, error)) error {
	sent := make([]*pawl.Envelope, len(jobs))
	now := time.Now()
	for i, e := range jobs {
		own := *e
		if own.ID.IsZero() {
			own.ID = pawl.NewID(now)
		}
		sent[i] = &own
	}
	stored, err := send(sent)
	if err == nil {
		err = stored.complete(jobs)
	}
	if maybeDone(ctx, err) {
		for i, e := range jobs {
			e.ID = sent[i].ID
		}
	}
	return err
}
