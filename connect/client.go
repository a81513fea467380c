package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/driver"
)

// Client is the queue in a file, whichever process owns the file. It implements [pawl.Enqueuer] and
// [pawl.Awaiter], so kinds and tasks take it. Its methods are safe for concurrent use.
type Client struct {
	path string
	opts Options

	ctx    context.Context // ends at Close
	cancel context.CancelFunc
	runs   sync.WaitGroup // calls of Elect, and handovers
	close  sync.Once
	closed error

	turn chan struct{} // held to find, give up, and close a link

	mu         sync.Mutex
	link       *link // nil while none is known
	elections  int   // calls of Elect that wait or run: 0 or 1
	candidates int   // other processes that wait for the file
}

var (
	_ pawl.Enqueuer = (*Client)(nil)
	_ pawl.Awaiter  = (*Client)(nil)
)

// Open returns a client of the queue in the file at path. If the file is free, Open opens it with
// bolt.Open, which creates a missing file, and serves it with admin.Serve. Otherwise it connects to the
// process that owns it.
//
// Errors: those of bolt.Open, such as bolt.ErrInsecure for a symbolic link; bolt.ErrLocked if the owner
// cannot be reached, together with the reason: admin.ErrNotLive if it does not serve the file, or
// admin.ErrUnreachable if it is stopped or stuck; admin.ErrDistrusted for a socket of another user; and
// those of admin.Serve. Close the client after use: it may own the file.
func Open(ctx context.Context, path string, opts *Options) (*Client, error) {
	c, err := newClient(path, opts)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if _, err := c.reach(ctx); err != nil {
		c.cancel()
		return nil, err
	}
	return c, nil
}

// newClient returns a client that has not looked for the file yet.
func newClient(path string, opts *Options) (*Client, error) {
	o, err := opts.complete()
	if err == nil && path == "" {
		err = &pawl.InvalidError{Field: "path", Reason: "is empty"}
	}
	if err == nil {
		path, err = filepath.Abs(path) // the working directory may change before this client opens it again
	}
	if err != nil {
		return nil, err
	}
	c := &Client{path: path, opts: o, turn: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Close ends what Elect runs, waits for it, and closes the file if this process owns it. Jobs stay in
// the file. Calls that still run return pawl.ErrClosed. A function that Elect runs must not call it.
func (c *Client) Close() error {
	c.close.Do(func() {
		c.mu.Lock() // nothing starts after it
		c.cancel()
		c.mu.Unlock()
		c.runs.Wait()
		c.turn <- struct{}{}
		defer func() { <-c.turn }()
		if l := c.forget(nil); l != nil {
			c.closed = l.close()
		}
	})
	return c.closed
}

// Use calls fn with the [admin.Admin] of the file, for everything that an operator can do: list jobs,
// retry and cancel them, pause queues, and so on. If the owner ends before it gets the request, or during
// a read, Use calls fn again with the next owner. If it ends during a change, the error matches
// pawl.ErrUnknownOutcome, and fn is not called again. Fn must not close the Admin or keep it.
func (c *Client) Use(ctx context.Context, fn func(admin.Admin) error) error {
	return c.use(ctx, func(l *link) error { return fn(l.Admin) })
}

// flapping is the time after a failure in which a second failure of the same owner ends the call. It
// bounds the tries with an owner whose answers this build does not understand.
const flapping = time.Minute

// use is Use for a link.
func (c *Client) use(ctx context.Context, fn func(*link) error) error {
	var before *link
	var failed time.Time
	for {
		l, err := c.reach(ctx)
		if err != nil {
			return err
		}
		err = fn(l)
		if !c.ended(ctx, l, err) || before != nil && before.same(l) && time.Since(failed) < flapping {
			return err
		}
		before, failed = l, time.Now()
	}
}

// ended reports whether a call failed because the owner has ended, so that it may be made again. It gives
// up the link if the link is of no more use.
func (c *Client) ended(ctx context.Context, l *link, err error) bool {
	unknown := errors.Is(err, pawl.ErrUnknownOutcome)
	switch {
	case ctx.Err() != nil || c.ctx.Err() != nil:
		return false
	case !errors.Is(err, admin.ErrUnreachable) && !errors.Is(err, pawl.ErrClosed):
		return false
	case l.queue != nil && unknown: // its own error
		return false
	}
	c.leave(l)
	return !unknown
}

// Enqueue implements [pawl.Enqueuer]. If the owner ends after it got the jobs and before it answered,
// Enqueue looks for the jobs in the file of the next owner. If they are there, they are stored and synced,
// and the error is nil. Otherwise it matches pawl.ErrUnknownOutcome, and the result has the IDs of the
// jobs: enqueue the jobs again under these IDs, with Envelope.ID, and nothing is stored twice. If they are
// stored after all, that call returns pawl.ErrConflict.
//
// Without pawl.Retain, a job that has succeeded leaves no trace. If a worker may end the jobs before they
// are enqueued again, give them a retention or an idempotency key.
func (c *Client) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) (done []pawl.Enqueued, err error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if _, err := driver.CheckBatch(jobs, pawl.MaxBatchBytes); err != nil {
		return nil, err
	}
	sent := driver.WithIDs(jobs) // one ID in every try
	var to *link
	err = c.use(ctx, func(l *link) error {
		to = l
		done, err = l.Enqueue(ctx, sent...)
		return err
	})
	if errors.Is(err, pawl.ErrUnknownOutcome) && ctx.Err() == nil && c.stored(ctx, to, sent) {
		return done, nil
	}
	return done, err
}

// stored reports whether jobs are in the file of another owner than the one that may have stored them.
// What an owner finds when it opens the file is synced.
func (c *Client) stored(ctx context.Context, by *link, sent []*pawl.Envelope) bool {
	for _, e := range sent {
		if e.UniqueKey != "" { // another job may have the key, or have been replaced
			return false
		}
	}
	found := false
	err := c.use(ctx, func(l *link) error {
		if l.same(by) {
			return nil
		}
		e, err := l.Job(ctx, sent[0].ID) // all are stored, or none
		found = err == nil && isOf(e, sent[0])
		return err
	})
	return err == nil && found
}

// isOf reports whether the job that a queue has under an ID is the job that was sent.
func isOf(stored, sent *pawl.Envelope) bool {
	return stored.Kind == sent.Kind && (stored.State == pawl.Completed || bytes.Equal(stored.Payload, sent.Payload))
}

// Await implements [pawl.Awaiter]. It waits across changes of the owner and misses no end. If a job
// without a record ends in another process, or while the file changes hands, Await returns it as
// completed, without its result.
func (c *Client) Await(ctx context.Context, id pawl.ID) (end *pawl.Envelope, err error) {
	var last *pawl.Envelope // the job when it was last seen
	err = c.use(ctx, func(l *link) error {
		e, err := l.Job(ctx, id)
		if err == nil {
			last = e
			end, err = l.Await(ctx, id)
		}
		if errors.Is(err, pawl.ErrNotFound) && last != nil {
			end, err = admin.Succeeded(last), nil
		}
		return err
	})
	return end, err
}
