package servicebus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/transport"
)

// Enqueue implements [pawl.Enqueuer], for one job. If the Service Bus queue has duplicate detection, the service drops a
// second job with the same ID within its window, and does not say so.
func (q *Queue) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if err := driver.SupportsJobs(abilities, jobs...); err != nil {
		return nil, fmt.Errorf("servicebus: %w", err)
	}
	if _, err := driver.CheckBatch(jobs, q.opts.MaxPayload); err != nil {
		return nil, err
	}
	if len(jobs) > 1 {
		return nil, fmt.Errorf("%w: servicebus stores one job a call, not %d; enqueue them one by one", pawl.ErrBatchTooLarge, len(jobs))
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
	if q.line(e.Queue, e.Kind) == "" {
		return nil, invalid("kind", "queue and kind make the name of a Service Bus queue of more than %d bytes; shorten them", maxEntity)
	}
	body := transport.AppendBody(&e, nil, q.leases.MaxBody)
	if most := q.leases.MaxBody - transport.HistoryRoom; len(body) > most {
		return nil, fmt.Errorf("%w: the job has %d bytes with its envelope, at most %d fit; raise Options.MaxMessage if the tier takes more",
			pawl.ErrPayloadTooLarge, len(body), most)
	}
	switch err := q.send(&e, body, e.ID.String()); {
	case errors.Is(err, pawl.ErrUnknownOutcome):
		return []pawl.Enqueued{{ID: e.ID}}, err
	case err != nil:
		return nil, err
	}
	e.Payload = nil
	q.leases.Emit(pawl.Event{Type: pawl.EventEnqueued, At: now, Job: &e})
	return []pawl.Enqueued{{ID: e.ID}}, nil
}

// send stores a job as a message with an ID. The service makes it available at its time.
func (q *Queue) send(e *pawl.Envelope, body []byte, id string) error {
	line := q.line(e.Queue, e.Kind)
	c, s, err := q.sender(line)
	if err != nil {
		return err
	}
	m := &azservicebus.Message{Body: body, MessageID: &id}
	if e.State == pawl.Delayed {
		at := e.NotBefore.UTC()
		m.ScheduledEnqueueTime = &at
	}
	ctx, cancel := q.call(c)
	defer cancel()
	return q.failed(c, line, true, s.SendMessage(ctx, m, nil))
}
