package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/gopawl/pawl/driver"
)

// maxStreamLine limits one line of a stream.
const maxStreamLine = 1 << 20

// errSilent is the cause that ends a silent stream.
var errSilent = fmt.Errorf("%w: nothing came for %v", ErrUnreachable, silence)

// stream is an answer that arrives piece by piece. Each read must return something in time.
type stream struct {
	io.ReadCloser
	response *http.Response
	ctx      context.Context
	cancel   context.CancelCauseFunc
	alarm    *time.Timer
}

// open requests a stream.
func (c *client) open(ctx context.Context, path string) (*stream, error) {
	if err := c.begin(ctx, false); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithCancelCause(ctx)
	alarm := time.AfterFunc(silence, func() { cancel(errSilent) })
	response, err := c.send(bounded, path, []byte("{}"))
	if err != nil {
		alarm.Stop()
		cancel(nil)
		return nil, c.explain(ctx, cause(bounded, err), false)
	}
	return &stream{response.Body, response, bounded, cancel, alarm}, nil
}

// cause returns why a context ended, if err reports only that it did.
func cause(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// Read implements io.Reader.
func (s *stream) Read(b []byte) (int, error) {
	s.alarm.Reset(silence)
	n, err := s.ReadCloser.Read(b)
	s.alarm.Stop() // the caller's own work does not count against the limit
	if err != nil && err != io.EOF {
		err = cause(s.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.alarm.Stop()
	s.cancel(nil)
	return s.ReadCloser.Close()
}

// lines iterates over the lines of a stream. The last one has an error, which may be that of the app.
func (s *stream) lines() iter.Seq2[streamLine, error] {
	return func(yield func(streamLine, error) bool) {
		from := bufio.NewReaderSize(s, maxStreamLine)
		for {
			text, err := from.ReadSlice('\n')
			switch {
			case errors.Is(err, bufio.ErrBufferFull):
				err = fmt.Errorf("%w: a line of more than %d bytes", errGarbled, maxStreamLine)
			case err == io.EOF:
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				yield(streamLine{}, err)
				return
			}
			var l streamLine
			if err = decodeAnswer(text, &l); err != nil {
				err = fmt.Errorf("%w: %w", errGarbled, err)
			} else if l.Error != nil {
				err = &reply{l.Error}
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// Check implements Admin.
func (c *client) Check(ctx context.Context) error {
	s, err := c.open(ctx, pathCheck)
	if err != nil {
		return err
	}
	defer s.Close()
	report, reported := driver.ProgressOf(ctx), false
	for l, err := range s.lines() {
		switch {
		case err != nil:
			return c.explain(ctx, err, false)
		case l.Done:
			return nil
		case l.Progress != nil:
			if !reported && l.Progress.Done > 0 {
				report(0, l.Progress.Total)
			}
			reported = true
			report(l.Progress.Done, l.Progress.Total)
		}
	}
	return errGarbled
}

// Backup implements Admin.
func (c *client) Backup(ctx context.Context, w io.Writer) error {
	s, err := c.open(ctx, pathBackup)
	if err != nil {
		return err
	}
	defer s.Close()
	total, err := strconv.ParseInt(s.response.Header.Get(sizeHeader), 10, 64)
	if err != nil || total < 0 {
		total = -1
	}
	to := &counted{w: w, total: total, report: driver.ProgressOf(ctx)}
	if total >= 0 {
		to.report(0, total)
	}
	if _, err := io.Copy(to, s); err != nil {
		if to.err != nil {
			return to.err // the caller's own error
		}
		return fmt.Errorf("the backup broke off after %d bytes, and the log of the app says why: %w", to.n, c.explain(ctx, err, false))
	}
	written, err := strconv.ParseInt(s.response.Trailer.Get(writtenTrailer), 10, 64)
	if err != nil || written != to.n {
		return fmt.Errorf("%w: the backup has %d bytes, and no word that these are all", errGarbled, to.n)
	}
	to.end()
	return nil
}

// counted is a writer that counts and reports its progress.
type counted struct {
	w        io.Writer
	n, total int64
	reported int64
	report   func(done, total int64)
	err      error // of w
}

// Write implements io.Writer.
func (c *counted) Write(b []byte) (n int, err error) {
	n, c.err = c.w.Write(b)
	if c.n += int64(n); c.n-c.reported >= 1<<20 && (c.total < 0 || c.n < c.total) {
		c.reported = c.n
		c.report(c.n, c.total)
	}
	return n, c.err
}

// end reports that everything is done.
func (c *counted) end() {
	if c.total < 0 {
		c.total = c.n
	}
	c.report(c.total, c.total)
}

// Events implements Admin.
func (c *client) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		err := c.hear(ctx, func(e Event) bool { return yield(e, nil) })
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// hear calls fn for each event until it returns false, which is not an error.
func (c *client) hear(ctx context.Context, fn func(Event) bool) error {
	s, err := c.open(ctx, pathEvents)
	if err != nil {
		return err
	}
	defer s.Close()
	for l, err := range s.lines() {
		switch {
		case err != nil:
			return c.explain(ctx, err, false)
		case l.Event != nil:
			if l.Event.Job == nil {
				return fmt.Errorf("%w: an event without a job", errGarbled)
			}
			if !fn(*l.Event) {
				return nil
			}
		}
	}
	return errGarbled
}
