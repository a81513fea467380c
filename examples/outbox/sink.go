package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// envelope is a message to deliver. Its ID is the same on every attempt.
type envelope struct {
	ID    pawl.ID   `json:"id"`
	Added time.Time `json:"added"`
	Text  string    `json:"text"`
}

// sink receives messages. When Send returns nil the message has arrived.
type sink interface {
	Send(ctx context.Context, e envelope) error
	Close() error
}

// errOffline means that the sink is unreachable, and so for the next message too.
var errOffline = errors.New("cannot reach the sink")

// openSink opens the sink at a URL or a file path. Connecting may take half of the timeout of a
// delivery, so that a silent network counts as offline.
func openSink(to string, timeout time.Duration) (sink, error) {
	if !strings.Contains(to, "://") {
		return openFile(to)
	}
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, usageError{fmt.Sprintf("%q is neither an http or https URL nor a file", to)}
	}
	return &web{url: to, client: &http.Client{
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: timeout / 2}).DialContext,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// web posts messages to a URL.
type web struct {
	url    string
	client *http.Client
}

func (s *web) Send(ctx context.Context, e envelope) error {
	body, err := json.Marshal(e)
	if err != nil {
		return pawl.Permanent(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return pawl.Permanent(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", e.ID.String())
	answer, err := s.client.Do(r)
	var dial *net.OpError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("%w: %w", errOffline, err)
	case err != nil:
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be reused
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge, code == http.StatusUnprocessableEntity:
		return pawl.Permanent(fmt.Errorf("%s refused it: %s", s.url, answer.Status))
	}
	return fmt.Errorf("%s answered %s", s.url, answer.Status) // retried: the server or the URL may be wrong
}

func (s *web) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// file appends messages to a file as lines of JSON.
type file struct{ f *os.File }

// openFile opens the file and completes an unfinished last line.
func openFile(path string) (*file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err = f.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			_, err = f.WriteString("\n")
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{f}, nil
}

func (s *file) Send(_ context.Context, e envelope) error {
	line, err := json.Marshal(e)
	if err != nil {
		return pawl.Permanent(err)
	}
	_, err = s.f.Write(append(line, '\n'))
	if err = errors.Join(err, s.f.Sync()); err != nil {
		return fmt.Errorf("%w: %w", errOffline, err) // a full disk also fails the next one
	}
	return nil
}

func (s *file) Close() error { return s.f.Close() }
