package admin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// limiter limits the connections of a server, so that clients that connect and stall cannot
// use up the file descriptors of the app. At the limit, a new connection takes the place of the
// one that has been idle longest. A connection with a request at work is never closed.
type limiter struct {
	net.Listener
	max    int
	grace  time.Duration // how long a new connection cannot be evicted
	admit  func(net.Conn) bool
	closed chan struct{}
	close  sync.Once
	freed  chan struct{} // capacity 1: a place became free

	mu    sync.Mutex
	conns []*limitedConn // in the order in which they came or became idle again
	open  int            // connections that the server still has, including evicted ones
	last  func()         // called when open becomes 0, if not nil
}

func newLimiter(l net.Listener, max int, grace time.Duration, admit func(net.Conn) bool) *limiter {
	return &limiter{
		Listener: l, max: max, grace: grace, admit: admit,
		closed: make(chan struct{}), freed: make(chan struct{}, 1),
	}
}

// limitedConn is one connection.
type limitedConn struct {
	net.Conn
	limiter *limiter

	// Guarded by limiter.mu.
	since   time.Time // when it arrived, or became idle
	working bool      // it has a request at work
	served  bool      // it has received an answer before
	gone    bool      // it was evicted or closed
}

// Accept implements net.Listener. While it waits for a place, new connections wait in the
// system's backlog.
func (c *limiter) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !c.admit(conn) {
			_ = conn.Close()
			continue
		}
		if s := c.add(conn); s != nil {
			return s, nil
		}
		_ = conn.Close()
		return nil, net.ErrClosed
	}
}

// add adds a connection as soon as there is a place. It returns nil when the limiter closes.
func (c *limiter) add(conn net.Conn) *limitedConn {
	for {
		s, wait := c.tryAdd(conn)
		if s != nil {
			return s
		}
		select {
		case <-time.After(wait):
		case <-c.freed:
		case <-c.closed:
		}
		select {
		case <-c.closed:
			return nil
		default:
		}
	}
}

// tryAdd adds a connection, and evicts another for it if needed. If it cannot, it returns how
// long to wait before the next try.
func (c *limiter) tryAdd(conn net.Conn) (*limitedConn, time.Duration) {
	c.mu.Lock()
	now, wait := time.Now(), time.Second
	if len(c.conns) >= c.max {
		i := slices.IndexFunc(c.conns, func(s *limitedConn) bool { return !s.working })
		if i >= 0 {
			wait = c.grace - now.Sub(c.conns[i].since)
		}
		if i < 0 || wait > 0 {
			c.mu.Unlock()
			return nil, wait
		}
		slow := c.conns[i]
		c.remove(slow)
		c.mu.Unlock()
		slow.evict(tooMany)
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	s := &limitedConn{Conn: conn, limiter: c, since: now}
	c.conns = append(c.conns, s)
	return s, 0
}

// remove removes a connection. The caller holds mu.
func (c *limiter) remove(s *limitedConn) {
	s.gone = true
	if i := slices.Index(c.conns, s); i >= 0 {
		c.conns = slices.Delete(c.conns, i, i+1)
		c.free()
	}
}

// free reports that there is a place.
func (c *limiter) free() {
	select {
	case c.freed <- struct{}{}:
	default:
	}
}

// Close implements net.Listener. It evicts every connection without a request at work.
func (c *limiter) Close() error {
	c.close.Do(func() { close(c.closed) })
	err := c.Listener.Close()
	c.mu.Lock()
	var slow []*limitedConn
	for _, s := range slices.Clone(c.conns) {
		if !s.working {
			c.remove(s)
			slow = append(slow, s)
		}
	}
	c.mu.Unlock()
	for _, s := range slow {
		s.evict(stopping)
	}
	return err
}

// The errors for a connection that is evicted. Its request has not begun, so repeating it is
// safe.
var (
	errTooMany  = fmt.Errorf("%w: too many connections; try again later", ErrBusy)
	errStopping = fmt.Errorf("%w: it is closing the admin server", ErrUnreachable)

	tooMany, stopping = lastAnswer(errTooMany), lastAnswer(errStopping)
)

// lastAnswer is a complete HTTP response, written without a handler.
func lastAnswer(err error) []byte {
	p, status := problemOf(err)
	body, _ := marshal(failure{p}) // strings alone always have a JSON form
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n%s: %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), versionHeader, apiVersion, len(body), body)
}

// evict closes a connection whose request has not begun. A connection that had an answer
// before expects no other.
func (s *limitedConn) evict(answer []byte) {
	if !s.served {
		_ = s.SetWriteDeadline(time.Now().Add(time.Second)) // it fits what the system keeps, so this waits for nobody
		_, _ = s.Conn.Write(answer)
	}
	_ = s.Conn.Close()
}

// Close implements net.Conn.
func (s *limitedConn) Close() error {
	s.limiter.mu.Lock()
	s.limiter.remove(s)
	s.limiter.mu.Unlock()
	return s.Conn.Close()
}

// begin marks the connection as working until idle, and reports whether it is still open.
func (s *limitedConn) begin() bool {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	s.working = !s.gone
	return s.working
}

// idle marks the request as answered. The connection may carry another.
func (s *limitedConn) idle() {
	c := s.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.conns, s); i >= 0 {
		c.conns = append(slices.Delete(c.conns, i, i+1), s)
		s.working, s.served, s.since = false, true, time.Now()
		c.free()
	}
}

type connKey struct{}

// ofConn stores the connection in the context of its requests.
func (c *limiter) ofConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// changed handles a new state of a connection.
func (c *limiter) changed(conn net.Conn, state http.ConnState) {
	s, ok := conn.(*limitedConn)
	if !ok {
		return
	}
	switch state {
	case http.StateIdle:
		s.idle()
	case http.StateNew:
		c.mu.Lock()
		c.open++
		c.mu.Unlock()
	case http.StateClosed:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open--; c.open == 0 && c.last != nil {
			c.last()
		}
	}
}

// empty waits until no connection is left, and reports whether that happened in time. The
// limiter is closed.
func (c *limiter) empty(within time.Duration) bool {
	left := make(chan struct{})
	c.mu.Lock()
	if c.last = func() { close(left) }; c.open == 0 {
		c.last()
	}
	c.mu.Unlock()
	select {
	case <-left:
		return true
	case <-time.After(within):
		return false
	}
}

// begins marks a request as at work. It reports false if the connection was evicted. A handler
// that an app mounts itself has no limiter.
func begins(ctx context.Context) bool {
	s, ok := ctx.Value(connKey{}).(*limitedConn)
	return !ok || s.begin()
}
