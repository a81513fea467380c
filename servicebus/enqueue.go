package servicebus

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/transport"
)

// Enqueue implements [pawl.Enqueuer], for one job. If the Service Bus queue has duplicate detection, the service drops a
// second job with the same ID within its window, and does not say so.
func (q *Queue) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	return q.leases.Enqueue(ctx, transport.Storing{
		Name: "servicebus", Abilities: abilities, MaxPayload: q.opts.MaxPayload,
		TooLarge: "raise Options.MaxMessage if the tier takes more",
		Fits:     q.fits,
		Store: func(_ context.Context, e *pawl.Envelope, body []byte, _ time.Time) (uint64, error) {
			return 0, q.send(e, body, e.ID.String())
		},
	}, jobs...)
}

// fits returns an error for a job whose Service Bus queue has too long a name.
func (q *Queue) fits(e *pawl.Envelope) error {
	if q.line(e.Queue, e.Kind) == "" {
		return invalid("kind", "queue and kind make the name of a Service Bus queue of more than %d bytes; shorten them", maxEntity)
	}
	return nil
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
		at := e.NotBefore.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond) // the protocol has milliseconds
		m.ScheduledEnqueueTime = &at
	}
	ctx, cancel := q.call(c)
	defer cancel()
	return q.failed(c, line, true, s.SendMessage(ctx, m, nil))
}
