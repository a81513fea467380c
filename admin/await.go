package admin

import (
	"context"
	"errors"
	"time"

	"github.com/gopawl/pawl"
)

const (
	longestWait = 10 * time.Second // of one request
	maxWaits    = 64               // requests that wait at a time; others get ErrBusy, and ask again
)

// awaitRequest asks for the end of a job. The app answers after a time even if the job goes on.
type awaitRequest struct {
	ID  pawl.ID
	For time.Duration
}

// awaited is a job that has ended, or goes on.
type awaited struct {
	Job   *pawl.Envelope
	Ended bool
}

var opAwait = define(operation[awaitRequest, awaited]{
	path: "jobs/await", waits: true, work: func(h *handler) *gate { return h.waits },
	do: func(ctx context.Context, a Admin, r *awaitRequest) (awaited, error) {
		e, err := a.Job(ctx, r.ID) // the answer for a job that goes on
		if err != nil {
			return awaited{}, err
		}
		timely, cancel := context.WithTimeout(ctx, min(max(r.For, 0), longestWait))
		defer cancel()
		end, err := a.Await(timely, r.ID)
		switch {
		case err == nil:
			return awaited{end, true}, nil
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return awaited{Job: e}, nil
		case errors.Is(err, pawl.ErrNotFound): // it has ended since
			return awaited{Succeeded(e), true}, nil
		}
		return awaited{}, err
	},
	check: func(r *awaitRequest, a *awaited) error {
		if a.Job == nil || a.Job.ID != r.ID {
			return errors.New("it has another job, or none")
		}
		return nil
	},
})

// Succeeded returns the end of a job whose record disappeared during a wait. The job succeeded,
// because dead jobs stay.
func Succeeded(last *pawl.Envelope) *pawl.Envelope {
	e := *last
	e.State, e.Payload, e.Completed = pawl.Completed, nil, time.Now()
	return &e
}

func (c *client) Await(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	var last *pawl.Envelope
	for {
		answer, err := ask(ctx, c, opAwait, awaitRequest{id, min(longestWait, c.timeout/2)})
		switch {
		case errors.Is(err, ErrBusy) && ctx.Err() == nil:
			continue // ask has waited for some seconds
		case errors.Is(err, pawl.ErrNotFound) && last != nil:
			return Succeeded(last), nil
		case err != nil:
			return nil, err
		case answer.Ended:
			return answer.Job, nil
		}
		last = answer.Job
	}
}

func (d direct) Await(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	if d.live {
		return using(d, "results", func(q pawl.Awaiter) (*pawl.Envelope, error) { return q.Await(ctx, id) })
	}
	e, err := d.q.Job(ctx, id)
	if err == nil && e.State != pawl.Dead && e.State != pawl.Completed {
		return nil, ErrNotLive
	}
	return e, err
}
