package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gopawl/pawl"
)

// Event is what the endpoint is told.
type Event struct {
	ID     string `json:"id"`
	Number int    `json:"number"`
	Type   string `json:"type"`
}

var deliver = pawl.Define[Event]("webhook.deliver", pawl.MaxRetries(6))

// envelope makes the job that delivers an event. The ID of the event names the effect:
// the queue delivers it once, however often it is enqueued, and so does the endpoint,
// however often it is sent.
func (r *runner) envelope(event Event) (*pawl.Envelope, error) {
	return deliver.Envelope(event,
		pawl.IdempotencyKey(event.ID),
		pawl.Timeout(r.timeout),
		pawl.Backoff(pawl.Exponential(r.backoff, 2).Cap(16*r.backoff).Jitter(pawl.DefaultJitter)))
}

// courier delivers events to a URL.
type courier struct{ url string }

// client follows no redirect, which would turn a POST into a GET.
var client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// deliver is the handler. Its context ends at the timeout of the job, and with it the
// request does.
func (c *courier) deliver(ctx context.Context, job *pawl.Job[Event]) error {
	body, err := json.Marshal(job.Args)
	if err != nil {
		return pawl.Permanent(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return pawl.Permanent(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", job.IdempotencyKey)
	resp, err := client.Do(req)
	if err != nil {
		return err // whether it arrived is not known; the key makes a repetition harmless
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // the connection can be used again
	return verdict(resp, time.Now())
}

// verdict says what an answer means for the job: nil for done, or an error that tells
// the worker whether and when to try again.
func verdict(resp *http.Response, now time.Time) error {
	code := resp.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	err := fmt.Errorf("endpoint answered %s", resp.Status)
	switch {
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		if wait, ok := retryAfter(resp.Header.Get("Retry-After"), now); ok {
			return pawl.RetryAfter(wait, err)
		}
		return err
	case code == http.StatusRequestTimeout, code >= 500:
		return err // by the backoff of the job
	}
	return pawl.Permanent(err)
}

// longestWait bounds what an endpoint can ask for.
const longestWait = time.Hour

// retryAfter reads the header of that name, which has seconds or a date (RFC 9110,
// 10.2.3).
func retryAfter(header string, now time.Time) (wait time.Duration, ok bool) {
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, longestWait), true
	}
	if date, err := http.ParseTime(header); err == nil {
		return min(max(date.Sub(now), 0), longestWait), true
	}
	return 0, false
}
