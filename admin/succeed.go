package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gopawl/pawl"
)

// DialFile is [Dial] for the app that serves the queue in the file at path. DialFile returns
// [ErrNotLive] if the folder of the file names no app. It returns [ErrUnreachable] if the app was
// killed, or accepts the connection and does not answer within 400 ms, or within the Timeout of the
// options if that is longer. It returns [ErrDistrusted] if a user without a right to the file owns the
// note or the socket.
func DialFile(ctx context.Context, path string, opts *DialOptions) (Admin, error) {
	at, err := placeOf(path)
	if err != nil {
		return nil, err
	}
	app, err := at.app(ctx, askTimeout, opts)
	switch {
	case err != nil:
		return nil, err
	case app == nil:
		return nil, ErrNotLive
	}
	return app, nil
}

// AwaitEnd waits until the app behind a, the result of [Dial] or [DialFile], no longer serves: it
// ended, closed its server, or was silent for a minute. It then returns nil. AwaitEnd does not poll:
// the system closes the connection of an app that ends, even of one that was killed.
//
// During the wait, the app knows that a process waits for its file. It may give up the file; see
// Options.Candidate.
//
// Errors: the context's; [ErrBusy] if too many processes wait; [pawl.ErrUnsupported] for an app of an
// older build, and for an Admin of the queue itself.
func AwaitEnd(ctx context.Context, a Admin) error {
	c, ok := a.(*client)
	if !ok {
		return &UnsupportedError{"waiting for its end"}
	}
	s, err := c.open(ctx, pathEnd)
	if err == nil {
		for _, err = range s.lines() {
			if err != nil {
				break
			}
		}
		_ = s.Close()
		err = nil // it began to serve this stream, so the end of the stream is the end of the app
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrBusy), errors.Is(err, pawl.ErrUnsupported), errors.Is(err, ErrDenied), errors.Is(err, ErrDistrusted):
		return err
	}
	return nil
}

// end is a stream of heartbeats until the server closes.
func (h *handler) end(out *sink, r *http.Request) {
	ctx, cancel := h.streaming(r)
	defer cancel()
	if h.candidate != nil {
		h.candidate(ctx)
	}
	h.lines(out)
	beats := time.NewTicker(heartbeat)
	defer beats.Stop()
	for {
		if out.say(beat()) != nil || out.flush() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-beats.C:
		}
	}
}
