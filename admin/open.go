package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// How long Open waits.
const (
	askTimeout = 400 * time.Millisecond // for an app to answer
	startTime  = 150 * time.Millisecond // for a process that has the file to begin to serve it
)

// OfflineFile is an [OfflineStore] in a file, such as an *offline.File. Its app may turn out to
// run.
type OfflineFile interface {
	OfflineStore

	// Path returns the path of the file.
	Path() string

	// Locked reports, without waiting, whether a process has the file open for writing; false if
	// that is unknown.
	Locked() bool
}

// Open returns the [Admin] of the queue in a file, whether its app runs or not. If an app serves
// the queue, the app answers, as with [Dial], and Open closes the file; otherwise Open uses the
// file, as [Offline] does. Open decides once: when an app starts or stops later, the calls fail
// with the error of a locked file or [ErrUnreachable], and another Open finds the current state.
//
// If a process has the file open but does not serve it, Open returns the file's own error, for a
// bolt file bolt.ErrLocked, which names the process. If there is an app that cannot be reached,
// the error says why. Options apply to the app. Their Timeout is also how long Open waits for
// the app's first answer, but no less than 400 ms; other calls wait as [DialOptions] says.
func Open(ctx context.Context, f OfflineFile, opts *DialOptions) (Admin, error) {
	return open(ctx, f, opts, askTimeout, func() {
		select {
		case <-ctx.Done():
		case <-time.After(startTime):
		}
	})
}

// open is Open with its own limits on the wait for an answer and for an app that may be
// starting.
func open(ctx context.Context, f OfflineFile, opts *DialOptions, timeout time.Duration, wait func()) (_ Admin, err error) {
	own := false // the result uses the file
	defer func() {
		if !own {
			_ = f.Close()
		}
	}()
	at, err := placeOf(f.Path())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.Path(), err)
	}
	app, noted := at.app(ctx, timeout, opts)
	if app != nil {
		return app, nil
	}
	if !f.Locked() {
		own = true
		return Offline(f), nil
	}
	if !errors.Is(noted, errStuck) {
		wait() // an app that starts takes the lock first, and then writes the note
		if app, noted = at.app(ctx, timeout, opts); app != nil {
			return app, nil
		}
	}
	if _, err = f.Stats(ctx); err == nil {
		own = true
		return Offline(f), nil
	}
	if noted != nil && f.Locked() {
		err = fmt.Errorf("%w; and its app could not be asked: %w", err, noted)
	}
	return nil, err
}

// errStuck means that an app accepts connections and answers none.
var errStuck = fmt.Errorf("%w: it may be stopped, or stuck", ErrUnreachable)

// app connects to the app that the note names. At first it waits for the given time, or for the
// Timeout of the options if that is longer. Without an app both results are nil.
func (p place) app(whole context.Context, timeout time.Duration, dial *DialOptions) (Admin, error) {
	if dial != nil {
		timeout = max(timeout, dial.Timeout)
	}
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
