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

// limiter bounds how many connections a server has, so that clients that connect and stall
// cannot use up the descriptors of the app. When all conns are taken a newcomer gets the seat
// of whoever has been there longest without having asked for anything: slow ones make room,
// and nobody whose request is at work loses its seat.
type limiter struct {
	net.Listener
	max    int
	grace  time.Duration // in which a newcomer cannot be sent away
	admit  func(net.Conn) bool
	closed chan struct{}
	close  sync.Once
	freed  chan struct{} // has room for one note that a seat became free

	mu    sync.Mutex
	conns []*limitedConn // in the order in which they came, or became idle again
	open  int            // connections that a goroutine of the server's is at, also of those sent away
	last  func()         // called when open becomes 0; nil means nobody
}

func newLimiter(l net.Listener, max int, grace time.Duration, admit func(net.Conn) bool) *limiter {
	return &limiter{
		Listener: l, max: max, grace: grace, admit: admit,
		closed: make(chan struct{}), freed: make(chan struct{}, 1),
	}
}

// seat is one connection.
type limitedConn struct {
	net.Conn
	limiter *limiter

	// Guarded by limiter.mu.
	since   time.Time // when it came, or became idle
	working bool      // a request of it is at work
	served  bool      // it had an answer before
	gone    bool      // it was sent away, or closed
}

// Accept implements net.Listener. It waits for a seat; newcomers wait in the backlog of the
// system meanwhile.
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

// sit gives a connection a seat as soon as there is one, or returns nil at the end.
func (c *limiter) add(conn net.Conn) *limitedConn {
	for {
		s, wait := c.tryAdd(conn)
		if s != nil {
			return s
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.freed:
		case <-c.closed:
		}
		timer.Stop()
		select {
		case <-c.closed:
			return nil
		default:
		}
	}
}

// tryAdd gives a connection a seat, if need be that of another; or it says when to try
// again.
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

// remove takes a seat away. Mu is held.
func (c *limiter) remove(s *limitedConn) {
	s.gone = true
	if i := slices.Index(c.conns, s); i >= 0 {
		c.conns = slices.Delete(c.conns, i, i+1)
		select {
		case c.freed <- struct{}{}:
		default:
		}
	}
}

// Close implements net.Listener, and sends away everybody who has not asked for anything.
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

// What somebody is told who loses the seat. The request has not begun, so asking again does
// nothing twice.
var (
	errTooMany  = fmt.Errorf("%w: too many connections at a time; ask again later", ErrBusy)
	errStopping = fmt.Errorf("%w: it stops serving operators", ErrUnreachable)

	tooMany, stopping = lastAnswer(errTooMany), lastAnswer(errStopping)
)

// lastAnswer is the whole of an answer that no handler gives.
func lastAnswer(err error) []byte {
	p, status := problemOf(err)
	body, _ := marshal(failure{p}) // of texts alone
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n%s: %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), versionHeader, apiVersion, len(body), body)
}

// evict closes a connection whose request has not begun. One that had an answer before
// expects none now.
func (s *limitedConn) evict(answer []byte) {
	if !s.served {
		_ = s.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
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

// begin notes that a request is at work, and reports whether the connection is still there:
// from now on it keeps its seat until idle.
func (s *limitedConn) begin() bool {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	s.working = !s.gone
	return s.working
}

// idle notes that the request was answered. The connection may carry another one.
func (s *limitedConn) idle() {
	c := s.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.conns, s); i >= 0 {
		c.conns = append(slices.Delete(c.conns, i, i+1), s)
		s.working, s.served, s.since = false, true, time.Now()
		select {
		case c.freed <- struct{}{}:
		default:
		}
	}
}

type connKey struct{}

// ofConn keeps the seat of a connection in the context of its requests.
func (c *limiter) ofConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// changed is told of every new state of a connection.
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

// empty waits until no connection is left, and reports whether that came about in time. It
// is called when nobody is accepted any more.
func (c *limiter) empty(within time.Duration) bool {
	left := make(chan struct{})
	c.mu.Lock()
	if c.last = func() { close(left) }; c.open == 0 {
		c.last()
	}
	c.mu.Unlock()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-left:
		return true
	case <-timer.C:
		return false
	}
}

// begins notes that a request begins its work. It reports false for one whose connection was
// sent away. A handler that is mounted elsewhere has no conns.
func begins(ctx context.Context) bool {
	s, ok := ctx.Value(connKey{}).(*limitedConn)
	return !ok || s.begin()
}
