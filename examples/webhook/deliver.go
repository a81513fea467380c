package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/handlers"
)

// Event is the payload that the endpoint receives.
type Event struct {
	ID     string `json:"id"`
	Number int    `json:"number"`
	Type   string `json:"type"`
}

var deliver = pawl.Define[Event]("webhook.deliver", pawl.MaxRetries(6))

// envelope returns the job that delivers an event. The event's ID is the idempotency key: the queue
// runs one job for it however often it is enqueued, and the endpoint accepts it once however often it
// is sent.
func (r *runner) envelope(event Event) (*pawl.Envelope, error) {
	return deliver.Envelope(event,
		pawl.IdempotencyKey(event.ID),
		pawl.Timeout(r.timeout),
		pawl.Backoff(pawl.Exponential(r.backoff, 2).Cap(16*r.backoff).Jitter(pawl.DefaultJitter)))
}

// courier delivers events to a URL.
type courier struct {
	url    string
	sender *handlers.Sender
}

// newCourier may reach the host of the URL even at a private address, because the operator chose it.
func newCourier(to string) (*courier, error) {
	u, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	sender, err := handlers.NewSender(&handlers.HTTPOptions{AllowHosts: []string{u.Hostname()}, NoRedirects: true})
	return &courier{to, sender}, err
}

// deliver is the handler. The sender retries 408, 425, 429 and 5xx, after the time of Retry-After if
// the endpoint sets it; any other failure status is permanent. If a request gets no answer, it is
// unknown whether it arrived; the key makes repeating it harmless.
func (c *courier) deliver(ctx context.Context, job *pawl.Job[Event]) error {
	body, err := json.Marshal(job.Args)
	if err != nil {
		return pawl.Permanent(err)
	}
	return c.sender.Send(ctx, &pawl.Job[handlers.Request]{Envelope: job.Envelope, Args: handlers.Request{
		Method: http.MethodPost, URL: c.url, Body: body,
		Headers: map[string]string{"Content-Type": "application/json", "Idempotency-Key": job.IdempotencyKey},
	}})
}
