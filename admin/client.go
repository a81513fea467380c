package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// DialOptions configures [Dial]. A nil *DialOptions and every zero field mean the default.
type DialOptions struct {
	// Token is the Token of the app's [HandlerOptions]. The client sends it over a socket, to
	// this machine, or over https, because anyone on the way could read it otherwise.
	Token string

	// Timeout is the limit for one call. A change gets at least 30 s, because abandoning it
	// leaves its outcome unknown. Check, Backup and Events have no such limit; they fail when
	// nothing arrives for a minute. The default is 30 s.
	Timeout time.Duration
}

// Limits on what a client accepts.
const (
	defaultTimeout = 30 * time.Second
	silence        = 4 * heartbeat // the longest silence of a live stream
	maxAnswer      = 256 << 20     // bytes: a page of the largest possible jobs
	maxFailure     = 1 << 20       // bytes of an error answer
)

// errGarbled means that an answer does not follow the API. It matches [ErrUnreachable].
var errGarbled error = garbled("the answer does not follow the API of package admin")

type garbled string

func (g garbled) Error() string        { return string(g) }
func (g garbled) Is(target error) bool { return target == ErrUnreachable }

// Dial returns the [Admin] of a running app that serves its queue at addr:
// unix:///folder/socket, as [Serve] does, or http://host:port/path or https://… for a [Handler]
// that the app has mounted. It sends the app one request.
//
// The client trusts nothing that the other side sends: it limits the size of answers, follows no
// redirects, and returns [ErrUnreachable] for an invalid answer. An app that goes away gives the
// same error. If that happens in the middle of a change, or if the context ends there, the error
// also matches pawl.ErrUnknownOutcome. Enqueue then returns the IDs that the jobs would have, so that
// the caller can look them up, or enqueue them again without storing them twice; a job that may
// have replaced another has none.
//
// Enqueue and Restore send all jobs of a call in one request, since they store all or none. More
// than the app accepts in one request gives pawl.ErrBatchTooLarge.
func Dial(ctx context.Context, addr string, opts *DialOptions) (Admin, error) {
	c, err := newClient(addr, opts, nil)
	if err != nil {
		return nil, err
	}
	if _, err := c.Stats(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// client is the result of Dial.
type client struct {
	addr    string // for errors
	base    string // prefix of URLs
	token   string
	timeout time.Duration
	http    *http.Client
	closed  atomic.Bool
}

// timeoutOf returns the time limit for a call.
func (c *client) timeoutOf(change bool) time.Duration {
	if change {
		return max(c.timeout, defaultTimeout)
	}
	return c.timeout
}

// ask sends a request and reads its answer. A change without an answer may have happened.
func (c *client) ask(ctx context.Context, path string, body []byte, change bool, read func(answer []byte) error) error {
	if err := c.begin(ctx, change); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, c.timeoutOf(change))
	defer cancel()
	response, err := c.patiently(bounded, path, body)
	if err != nil {
		return c.explain(ctx, err, change)
	}
	defer response.Body.Close()
	answer, err := readBounded(response.Body, maxAnswer)
	if err != nil {
		return c.explain(ctx, err, change)
	}
	if err := read(answer); err != nil {
		return c.explain(ctx, fmt.Errorf("%w: %w", errGarbled, err), change)
	}
	return nil
}

// begin rejects a call before it is sent.
func (c *client) begin(ctx context.Context, change bool) error {
	if c.closed.Load() {
		return pawl.ErrClosed
	}
	if err := ctx.Err(); err != nil && change {
		return fmt.Errorf("%w: %w", pawl.ErrNotAccepted, err)
	} else if err != nil {
		return err
	}
	return nil
}

// patiently sends a request, and repeats it when the app was too busy to begin with it.
func (c *client) patiently(ctx context.Context, path string, body []byte) (*http.Response, error) {
	for wait := 25 * time.Millisecond; ; wait *= 2 {
		response, err := c.send(ctx, path, body)
		if !errors.Is(err, ErrBusy) || wait > 2*time.Second {
			return response, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}

// send sends a request and returns a valid answer.
func (c *client) send(ctx context.Context, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(payloadHeader, "base64")
	if len(body) > smallBody {
		r.Header.Set("Expect", "100-continue") // so that a refusal can be read before the whole body is sent
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	connected := false
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}
	response, err := c.http.Do(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil && !connected {
		return nil, &unsent{err}
	}
	if err != nil {
		return nil, err
	}
	if err := c.understood(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// understood turns an invalid answer, or an error answer, into an error.
func (c *client) understood(response *http.Response) (err error) {
	status := response.StatusCode
	switch version := response.Header.Get(versionHeader); {
	case version == apiVersion && status == http.StatusOK:
		return nil
	case version == apiVersion:
		var f failure
		if answer, err := readBounded(response.Body, maxFailure); err == nil && json.Unmarshal(answer, &f) == nil && f.Error != nil {
			return &reply{f.Error.err()}
		}
		err = fmt.Errorf("%w: it is %s, without a reason", errGarbled, truncate(response.Status))
	case version != "":
		err = fmt.Errorf("%w: the app speaks version %q and this program version %s; use the version of the app", errGarbled, truncate(version), apiVersion)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		err = fmt.Errorf("%w: %s", ErrDenied, response.Status)
	case status >= 500: // from a proxy
		err = fmt.Errorf("%w: a server in front of the app answered %s", ErrUnreachable, truncate(response.Status))
	default:
		err = garbled(fmt.Sprintf("answered %s, but is not a pawl endpoint; check the path", truncate(response.Status)))
	}
	if status >= 300 && status < 500 { // a server that refused the request did not carry it out
		return &reply{err}
	}
	return err
}

// reply is an error that the other side answered with. It either did nothing else, or the error
// says what it did.
type reply struct{ error }

// Unwrap returns the error of the answer.
func (r *reply) Unwrap() error { return r.error }

// unsent is the error of a request that was never sent.
type unsent struct{ error }

// Unwrap returns why there was no connection.
func (u *unsent) Unwrap() error { return u.error }

// explain returns the error for the caller: the app's answer unchanged, the end of the caller's
// context as such, and everything else as an app that does not answer. A change that may have
// happened has an unknown outcome.
func (c *client) explain(ctx context.Context, err error, change bool) error {
	answer := (*reply)(nil)
	answered := errors.As(err, &answer) && !(ctx.Err() != nil && errors.Is(err, ErrBusy))
	switch {
	case answered:
		return answer.error
	case ctx.Err() != nil && !change:
		return ctx.Err()
	case ctx.Err() != nil && (answer != nil || errors.As(err, new(*unsent))):
		return driver.NotAccepted(ctx)
	}
	within, happened := c.timeoutOf(change), change && !errors.As(err, new(*unsent))
	var asked *url.Error // it repeats the method and the address
	if errors.As(err, &asked) {
		err = asked.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ended, or closed the connection")
	}
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w at %s: no answer within %v", ErrUnreachable, c.addr, within)
	case refusedByMode(err):
		err = fmt.Errorf("%w: %s: %w", ErrDenied, c.addr, err)
	case !errors.Is(err, ErrUnreachable):
		err = fmt.Errorf("%w at %s: %w", ErrUnreachable, c.addr, err)
	}
	if happened {
		return fmt.Errorf("%w: whether it was done is not known: %w", pawl.ErrUnknownOutcome, err)
	}
	return err
}

// readBounded reads an answer of at most that many bytes.
func readBounded(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		return nil, fmt.Errorf("%w: an answer of more than %d bytes", errGarbled, most)
	}
	return b, err
}

// Close implements Admin.
func (c *client) Close() error {
	c.closed.Store(true)
	c.http.CloseIdleConnections()
	return nil
}
