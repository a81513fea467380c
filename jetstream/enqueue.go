package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/transport"
)

// Enqueue implements [pawl.Enqueuer], for one job. It returns [pawl.ErrConflict] for a job with an ID that
// the stream received within its duplicate window, which is 2 minutes by default.
func (q *Queue) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if err := driver.SupportsJobs(q.Abilities(), jobs...); err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	if _, err := driver.CheckBatch(jobs, q.opts.MaxPayload); err != nil {
		return nil, err
	}
	if len(jobs) > 1 {
		return nil, fmt.Errorf("%w: jetstream stores one job a call, not %d; enqueue them one by one", pawl.ErrBatchTooLarge, len(jobs))
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
	if line := q.line(e.Queue, e.Kind); len(line) > maxLine {
		return nil, invalid("kind", "queue and kind make the name of a consumer of %d bytes, at most %d are possible; shorten them", len(line), maxLine)
	}
	body := transport.AppendBody(&e, nil, q.maxBody)
	if most := q.maxBody - transport.HistoryRoom; len(body) > most {
		return nil, fmt.Errorf("%w: the job has %d bytes with its envelope, this server takes %d; raise its max_payload",
			pawl.ErrPayloadTooLarge, len(body), most)
	}
	seq, duplicate, err := q.stored(q.exchange(q.message(&e, body, ""))[0])
	done := []pawl.Enqueued{{ID: e.ID}}
	switch {
	case errors.Is(err, pawl.ErrUnknownOutcome):
		return done, err
	case err != nil:
		return nil, err
	case duplicate:
		return nil, fmt.Errorf("%w: the stream has received job %s already", pawl.ErrConflict, e.ID)
	}
	e.Seq, e.Payload = seq, nil
	q.leases.Emit(pawl.Event{Type: pawl.EventEnqueued, At: now, Job: &e})
	return done, nil
}
