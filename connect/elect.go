package connect

import (
	"context"
	"errors"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
)

// oldPause is how long Elect waits between two checks of an owner that cannot report its end.
const oldPause = time.Second

// Elect waits until this process owns the file, and calls run with the queue, usually to run a worker.
// Of all processes that call Elect, one runs; when it ends, even by kill -9, another takes over. The
// others wait at the socket of the owner and do not poll, as long as the owner has one. Meanwhile every
// client works as before.
//
// Run returns when its context ends, which is when ctx ends or the client is closed. It must not close the
// queue. Elect returns what run returns. If ctx ends before this process is elected, Elect returns the
// error of ctx; if the client is closed, pawl.ErrClosed. Other errors are those of [Open], but Elect waits as long as
// the owner lives, even if it is stopped or does not serve the file. A client has one Elect at a time: a
// second one returns a *pawl.InvalidError.
//
// When run has returned, the client keeps the file until another process wants it, or Close.
func (c *Client) Elect(ctx context.Context, run func(ctx context.Context, q *bolt.Queue) error) error {
	if run == nil {
		return &pawl.InvalidError{Field: "run", Reason: "it is nil"}
	}
	if err := c.stand(); err != nil {
		return err
	}
	defer c.runs.Done()
	defer c.withdraw()
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	q, err := c.elected(own)
	switch {
	case err == nil:
		return run(own, q)
	case ctx.Err() != nil:
		return ctx.Err()
	case c.ctx.Err() != nil:
		return pawl.ErrClosed
	}
	return err
}

// stand registers a call of Elect.
func (c *Client) stand() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx.Err() != nil:
		return pawl.ErrClosed
	case c.elections > 0:
		return &pawl.InvalidError{Field: "run", Reason: "this client has a call of Elect already; run both workers in one"}
	}
	c.elections++
	c.runs.Add(1)
	return nil
}

// withdraw ends a call of Elect, and lets others have the file.
func (c *Client) withdraw() {
	c.mu.Lock()
	c.elections--
	c.mu.Unlock()
	c.yield()
}

// elected returns the queue once this process owns the file.
func (c *Client) elected(ctx context.Context) (*bolt.Queue, error) {
	for {
		l, err := c.reach(ctx)
		switch {
		case errors.Is(err, bolt.ErrLocked) && !errors.Is(err, admin.ErrDistrusted) && ctx.Err() == nil:
			c.pause(ctx, lastPause) // reach has already tried for Options.Timeout
			continue
		case err != nil:
			return nil, err
		case l.queue != nil:
			return l.queue, nil
		}
		err = admin.AwaitEnd(ctx, l.Admin)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, admin.ErrBusy), errors.Is(err, pawl.ErrUnsupported): // an owner of an older build
			c.pause(ctx, oldPause)
		case err != nil:
			return nil, err
		}
		c.leave(l)
	}
}

// candidate notes, until ctx ends, that another process waits for the file.
func (c *Client) candidate(ctx context.Context) {
	c.mu.Lock()
	c.candidates++
	c.mu.Unlock()
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.candidates--
	})
	c.yield()
}

// yield gives up the file, in the background, if this process runs nothing with it and another wants it.
func (c *Client) yield() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.unneeded() || c.ctx.Err() != nil {
		return
	}
	c.runs.Add(1)
	go func() {
		defer c.runs.Done()
		c.handOver()
	}()
}

// unneeded reports whether this process owns the file, runs nothing with it, and another process wants
// it. The caller holds mu.
func (c *Client) unneeded() bool {
	return c.link != nil && c.link.queue != nil && c.elections == 0 && c.candidates > 0
}

// handOver gives up the file. During it, no call of this client looks for the file.
func (c *Client) handOver() {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	c.mu.Lock()
	l, unneeded := c.link, c.unneeded()
	if unneeded {
		c.link = nil
	}
	c.mu.Unlock()
	if !unneeded {
		return
	}
	c.opts.Logger.Debug("gives the file of the queue up to a process that waits for it", "path", c.path)
	if err := l.close(); err != nil {
		c.opts.Logger.Warn("closing the queue failed when another process wanted it", "path", c.path, "error", err)
	}
	c.pause(c.ctx, courtesy)
}
