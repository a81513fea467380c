package beanstalkd

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/transport"
)

// Enqueue implements [pawl.Enqueuer], for one job.
func (q *Queue) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if err := driver.SupportsJobs(q.Abilities(), jobs...); err != nil {
		return nil, fmt.Errorf("beanstalkd: %w", err)
	}
	if _, err := driver.CheckBatch(jobs, q.opts.MaxPayload); err != nil {
		return nil, err
	}
	if len(jobs) > 1 {
		return nil, fmt.Errorf("%w: beanstalkd stores one job a call, not %d; enqueue them one by one", pawl.ErrBatchTooLarge, len(jobs))
	}
	if err := q.leases.Begin(ctx); err != nil {
		return nil, err
	}
	defer q.leases.End()
	if len(jobs) == 0 {
		return nil, nil
	}
	e, now := *jobs[0], time.Now()
	e.Seq = 0
	if driver.Accept(&e, now) {
		e.State = pawl.Ready
	} else {
		e.State = pawl.Delayed
	}
	tube := q.tube(e.Queue, e.Kind)
	if len(tube) > maxTube {
		return nil, invalid("kind", "queue and kind make the name of a tube of %d bytes, at most %d are possible; shorten them", len(tube), maxTube)
	}
	body := transport.AppendBody(&e, nil, q.maxJob)
	if most := q.maxJob - transport.HistoryRoom; len(body) > most {
		return nil, fmt.Errorf("%w: the job has %d bytes with its envelope, this server takes %d; start it with a larger -z",
			pawl.ErrPayloadTooLarge, len(body), most)
	}
	c, err := q.putter(ctx)
	if err != nil {
		return nil, err
	}
	var p placed
	done := []pawl.Enqueued{{ID: e.ID}}
	sent, err := c.exchange(0, c.put(&p, tube, serverPriority(e.Priority), seconds(e.NotBefore.Sub(now)),
		seconds(q.opts.Lease+margin), body))
	switch {
	case p.refused != nil:
		return nil, p.refused
	case err != nil && !sent:
		return nil, q.unavailable(err)
	case err != nil:
		return done, q.unknown(sent, err)
	}
	e.Seq, e.Payload = p.number, nil
	q.leases.Emit(pawl.Event{Type: pawl.EventEnqueued, At: now, Job: &e})
	return done, nil
}
