package connect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
)

// link gives access to a file, through its owner or as its owner.
type link struct {
	admin.Admin
	process admin.Process // the owner

	queue  *bolt.Queue   // nil if another process is the owner
	server *admin.Server // nil also on a system without sockets
}

// same reports whether two links lead to one owner.
func (l *link) same(other *link) bool {
	if l.queue != nil || other.queue != nil {
		return l.queue == other.queue
	}
	return l.process.PID == other.process.PID && l.process.Started.Equal(other.process.Started)
}

// close gives up the file, or closes the connection to its owner.
func (l *link) close() error {
	var err error
	if l.server != nil {
		err = l.server.Close()
	}
	if l.queue != nil {
		return errors.Join(err, l.queue.Close())
	}
	return l.Admin.Close()
}

// How long a client pauses before it looks for the file or its owner again, and how long it leaves a
// given-up file to the process that wants it.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 250 * time.Millisecond
	courtesy   = 50 * time.Millisecond
)

// reach returns the current link, or finds one.
func (c *Client) reach(ctx context.Context) (*link, error) {
	if l := c.current(); l != nil {
		return l, nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-c.ctx.Done():
		return nil, pawl.ErrClosed
	case <-ctx.Done():
		return nil, driver.NotAccepted(ctx)
	}
	if l := c.current(); l != nil {
		return l, nil
	}
	l, err := c.find(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = l
	return l, nil
}

func (c *Client) current() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// forget returns the current link and forgets it, if it is the given one; nil stands for any.
func (c *Client) forget(l *link) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l != nil && c.link != l {
		return nil
	}
	l, c.link = c.link, nil
	return l
}

// leave closes a link that leads nowhere.
func (c *Client) leave(l *link) {
	if c.forget(l) != nil {
		_ = l.close() // it has ended
	}
}

// find opens the file, or else connects to its owner. It tries until the timeout: an owner that starts
// takes the file before it serves it, and a new owner may need time to open it.
func (c *Client) find(ctx context.Context) (*link, error) {
	deadline := time.Now().Add(c.opts.Timeout)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		switch {
		case c.ctx.Err() != nil:
			return nil, pawl.ErrClosed
		case ctx.Err() != nil:
			return nil, driver.NotAccepted(ctx)
		}
		q, err := bolt.Open(c.path, c.opts.Queue)
		if err == nil {
			return c.own(q)
		}
		if !errors.Is(err, bolt.ErrLocked) {
			return nil, err
		}
		l, asked := c.dial(ctx)
		if asked == nil {
			return l, nil
		}
		again := errors.Is(asked, admin.ErrNotLive) || errors.Is(asked, admin.ErrUnreachable) || errors.Is(asked, pawl.ErrClosed)
		if !again || time.Now().After(deadline) {
			return nil, fmt.Errorf("%w; and its owner could not be asked: %w", err, asked)
		}
		c.pause(ctx, pause)
	}
}

// pause waits until a time has passed, ctx ends, or the client is closed.
func (c *Client) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
}

// own returns the link of an owner.
func (c *Client) own(q *bolt.Queue) (*link, error) {
	server, err := admin.Serve(q, &admin.Options{Name: c.opts.Name, Logger: c.opts.Logger, Candidate: c.candidate})
	if errors.Is(err, pawl.ErrUnsupported) {
		c.opts.Logger.Warn("other processes cannot use the queue: this system has no sockets for it", "path", c.path)
		server, err = nil, nil
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	c.opts.Logger.Debug("owns the file of the queue", "path", c.path)
	return &link{Admin: admin.Of(q), queue: q, server: server}, nil
}

// dial returns a link through the owner.
func (c *Client) dial(ctx context.Context) (*link, error) {
	a, err := admin.DialFile(ctx, c.path, nil)
	if err != nil {
		return nil, err
	}
	s, err := a.Stats(ctx)
	if err == nil && s.Process == nil {
		err = fmt.Errorf("%w: it does not say which process it is", admin.ErrUnreachable)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return &link{Admin: a, process: *s.Process}, nil
}
