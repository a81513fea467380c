package top

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// link is the connection to the process that has the queue. It keeps a connection to an app
// open, and closes the file of a stopped app after each use.
type link struct {
	open    func(context.Context, func(string)) (admin.Admin, error)
	timeout time.Duration

	mu sync.Mutex  // one use at a time
	a  admin.Admin // the last app that answered; nil if none did

	noticed sync.Mutex
	notices []string // notices about the opened queue that are not shown yet
}

// notice keeps a sentence for the screen.
func (l *link) notice(text string) {
	l.noticed.Lock()
	defer l.noticed.Unlock()
	l.notices = append(l.notices, text)
}

// takeNotices returns the sentences since the last call, as one.
func (l *link) takeNotices() string {
	l.noticed.Lock()
	defer l.noticed.Unlock()
	text := strings.Join(l.notices, "; ")
	l.notices = nil
	return text
}

// use calls fn with the app or the file. If the app has disconnected since the last use, it
// tries once more, so that the file answers instead.
func (l *link) use(ctx context.Context, fn func(context.Context, admin.Admin) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	if l.a != nil {
		err := fn(ctx, l.a)
		if !gone(err) {
			return l.patiently(ctx, err)
		}
		l.drop()
		if ctx.Err() != nil { // the app is stuck, and still has its file
			return l.patiently(ctx, err)
		}
	}
	a, err := l.open(ctx, l.notice)
	if err != nil {
		return l.patiently(ctx, err)
	}
	l.a = a
	err = fn(ctx, a)
	if gone(err) || !serves(a) {
		l.drop()
	}
	return l.patiently(ctx, err)
}

// back reports whether an app serves the queue again. It does not read the file.
func (l *link) back(ctx context.Context) (bool, error) {
	served := false
	err := l.use(ctx, func(_ context.Context, a admin.Admin) error {
		served = serves(a)
		return nil
	})
	return served, err
}

// drop closes what is open. It ignores the error of Close: the previous use succeeded or
// returned its own error.
func (l *link) drop() {
	if l.a != nil {
		_ = l.a.Close()
		l.a = nil
	}
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}

// patiently replaces the error of a timeout by one in plain words.
func (l *link) patiently(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v: %w", l.timeout, err)
	}
	return err
}

// gone reports whether err means that a connection is no longer usable.
func gone(err error) bool {
	return errors.Is(err, admin.ErrUnreachable) || errors.Is(err, pawl.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// serves reports whether a is an app, without reading the file: only a file reports immediately
// that it has no events. Anything else counts as an app; the statistics then show the truth.
func serves(a admin.Admin) bool {
	ended, end := context.WithCancel(context.Background())
	end()
	for _, err := range a.Events(ended) {
		return !errors.Is(err, admin.ErrNotLive)
	}
	return true
}
