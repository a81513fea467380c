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

// link is the way to whoever has the queue. A connection to an app is kept; the file of a
// stopped app is let go of after each use.
type link struct {
	open     func(context.Context, func(string)) (admin.Admin, error)
	patience time.Duration

	mu sync.Mutex  // one use at a time
	a  admin.Admin // the app that answered last; nil when none did

	noticed sync.Mutex
	notices []string // of what was opened, not shown yet
}

// notice keeps a sentence for the screen.
func (l *link) notice(text string) {
	l.noticed.Lock()
	defer l.noticed.Unlock()
	l.notices = append(l.notices, text)
}

// told takes the sentences that came since the last time, as one.
func (l *link) told() string {
	l.noticed.Lock()
	defer l.noticed.Unlock()
	text := strings.Join(l.notices, "; ")
	l.notices = nil
	return text
}

// use calls fn with the app or the file. An app that went away since the last use is looked
// for once more, so that its file answers in its place.
func (l *link) use(ctx context.Context, fn func(context.Context, admin.Admin) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	if l.a != nil {
		err := fn(ctx, l.a)
		if !gone(err) {
			return l.patiently(ctx, err)
		}
		l.drop()
		if ctx.Err() != nil { // it hangs: it has its file still
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

// back reports whether an app serves the queue again. It does not look into the file.
func (l *link) back(ctx context.Context) (bool, error) {
	served := false
	err := l.use(ctx, func(_ context.Context, a admin.Admin) error {
		served = serves(a)
		return nil
	})
	return served, err
}

// drop lets go of what is open. What its Close says is of no use to anybody: the use before
// it succeeded or told its own error.
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

// patiently says in plain words that the time for one use is over.
func (l *link) patiently(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v: %w", l.patience, err)
	}
	return err
}

// gone reports whether err means that a connection is of no use any more.
func gone(err error) bool {
	return errors.Is(err, admin.ErrUnreachable) || errors.Is(err, pawl.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// serves reports whether a is an app, without a look into the file: only a file says at
// once that nothing happens in it. Who says anything else is taken for an app; the
// statistics tell the truth then.
func serves(a admin.Admin) bool {
	ended, end := context.WithCancel(context.Background())
	end()
	for _, err := range a.Events(ended) {
		return !errors.Is(err, admin.ErrNotLive)
	}
	return true
}
