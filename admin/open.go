package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/gopawl/pawl/bolt"
)

// How long Open waits.
const (
	askTimeout = 400 * time.Millisecond // for an app to answer
	startTime  = 150 * time.Millisecond // for a process that has the file to begin to serve it
)

// Open returns the [Admin] of the queue in the file at path, whether its app runs or not. If an
// app serves the queue, the app answers, as with [Dial]; otherwise Open uses the file, as [File]
// does. Open decides once: when an app starts or stops later, the calls fail with bolt.ErrLocked
// or [ErrUnreachable], and another Open finds the current state.
//
// If a process has the file open but does not serve it, Open returns bolt.ErrLocked, and the
// error names the process. If there is an app that cannot be reached, the error says why.
func Open(ctx context.Context, path string, opts *FileOptions) (Admin, error) {
	return open(ctx, path, opts, askTimeout, func() {
		timer := time.NewTimer(startTime)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	})
}

// open is Open with its own limits on the wait for an answer and for an app that may be
// starting.
func open(ctx context.Context, path string, opts *FileOptions, timeout time.Duration, wait func()) (Admin, error) {
	at, err := placeOf(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	dial := new(DialOptions)
	if opts != nil {
		dial.Timeout = opts.Timeout
		timeout = max(timeout, opts.Timeout)
	}
	app, noted := at.app(ctx, timeout, dial)
	if app != nil {
		return app, nil
	}
	if !locked(at.file) {
		return File(path, opts), nil
	}
	if !errors.Is(noted, errStuck) {
		wait() // an app that starts takes the lock first, and then writes the note
		if app, noted = at.app(ctx, timeout, dial); app != nil {
			return app, nil
		}
	}
	f := File(path, opts)
	if _, err = f.Stats(ctx); err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, bolt.ErrLocked) && noted != nil {
		err = fmt.Errorf("%w; and its app could not be asked: %w", err, noted)
	}
	return nil, err
}

// errStuck means that an app accepts connections and answers none.
var errStuck = fmt.Errorf("%w: it may be stopped, or stuck", ErrUnreachable)

// app connects to the app that the note names, at first with the given limit. Without an app
// both results are nil.
func (p place) app(whole context.Context, timeout time.Duration, dial *DialOptions) (Admin, error) {
	n, err := p.readNote()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := newClient(n.Address, dial, p.trusts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(whole, timeout)
	defer cancel()
	if _, err := c.Stats(ctx); err != nil {
		_ = c.Close()
		if errors.Is(err, context.DeadlineExceeded) && whole.Err() == nil {
			err = fmt.Errorf("%w: no answer within %v", errStuck, timeout)
		}
		return nil, fmt.Errorf("%s (pid %d): %w", truncate(n.Name), n.PID, err)
	}
	return c, nil
}
