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

// crowd bounds how many connections a server has, so that clients that connect and stall
// cannot use up the descriptors of the app. When all seats are taken a newcomer gets the seat
// of whoever has been there longest without having asked for anything: slow ones make room,
// and nobody whose request is at work loses its seat.
type crowd struct {
	net.Listener
	max    int
	grace  time.Duration // in which a newcomer cannot be sent away
	admit  func(net.Conn) bool
	closed chan struct{}
	close  sync.Once
	freed  chan struct{} // has room for one note that a seat became free

	mu    sync.Mutex
	seats []*seat // in the order in which they came, or became idle again
	open  int     // connections that a goroutine of the server's is at, also of those sent away
	last  func()  // called when open becomes 0; nil means nobody
}

func newCrowd(l net.Listener, max int, grace time.Duration, admit func(net.Conn) bool) *crowd {
	return &crowd{
		Listener: l, max: max, grace: grace, admit: admit,
		closed: make(chan struct{}), freed: make(chan struct{}, 1),
	}
}

// seat is one connection.
type seat struct {
	net.Conn
	crowd *crowd

	// Guarded by crowd.mu.
	since   time.Time // when it came, or became idle
	working bool      // a request of it is at work
	served  bool      // it had an answer before
	gone    bool      // it was sent away, or closed
}

// Accept implements net.Listener. It waits for a seat; newcomers wait in the backlog of the
// system meanwhile.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !c.admit(conn) {
			_ = conn.Close()
			continue
		}
		if s := c.sit(conn); s != nil {
			return s, nil
		}
		_ = conn.Close()
		return nil, net.ErrClosed
	}
}

// sit gives a connection a seat as soon as there is one, or returns nil at the end.
func (c *crowd) sit(conn net.Conn) *seat {
	for {
		s, wait := c.trySit(conn)
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

// trySit gives a connection a seat, if need be that of another; or it says when to try
// again.
func (c *crowd) trySit(conn net.Conn) (*seat, time.Duration) {
	c.mu.Lock()
	now, wait := time.Now(), time.Second
	if len(c.seats) >= c.max {
		i := slices.IndexFunc(c.seats, func(s *seat) bool { return !s.working })
		if i >= 0 {
			wait = c.grace - now.Sub(c.seats[i].since)
		}
		if i < 0 || wait > 0 {
			c.mu.Unlock()
			return nil, wait
		}
		slow := c.seats[i]
		c.remove(slow)
		c.mu.Unlock()
		slow.sendAway(crowded)
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	s := &seat{Conn: conn, crowd: c, since: now}
	c.seats = append(c.seats, s)
	return s, 0
}

// remove takes a seat away. Mu is held.
func (c *crowd) remove(s *seat) {
	s.gone = true
	if i := slices.Index(c.seats, s); i >= 0 {
		c.seats = slices.Delete(c.seats, i, i+1)
		select {
		case c.freed <- struct{}{}:
		default:
		}
	}
}

// Close implements net.Listener, and sends away everybody who has not asked for anything.
func (c *crowd) Close() error {
	c.close.Do(func() { close(c.closed) })
	err := c.Listener.Close()
	c.mu.Lock()
	var slow []*seat
	for _, s := range slices.Clone(c.seats) {
		if !s.working {
			c.remove(s)
			slow = append(slow, s)
		}
	}
	c.mu.Unlock()
	for _, s := range slow {
		s.sendAway(stopping)
	}
	return err
}

// What somebody is told who loses the seat. The request has not begun, so asking again does
// nothing twice.
var (
	errCrowded  = fmt.Errorf("%w: too many connections at a time; ask again later", ErrBusy)
	errStopping = fmt.Errorf("%w: it stops serving operators", ErrUnreachable)

	crowded, stopping = lastAnswer(errCrowded), lastAnswer(errStopping)
)

// lastAnswer is the whole of an answer that no handler gives.
func lastAnswer(err error) []byte {
	p, status := problemOf(err)
	body, _ := marshal(failure{p}) // of texts alone
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n%s: %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), versionHeader, apiVersion, len(body), body)
}

// sendAway closes a connection whose request has not begun. One that had an answer before
// expects none now.
func (s *seat) sendAway(answer []byte) {
	if !s.served {
		_ = s.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = s.Conn.Write(answer)
	}
	_ = s.Conn.Close()
}

// Close implements net.Conn.
func (s *seat) Close() error {
	s.crowd.mu.Lock()
	s.crowd.remove(s)
	s.crowd.mu.Unlock()
	return s.Conn.Close()
}

// begin notes that a request is at work, and reports whether the connection is still there:
// from now on it keeps its seat until idle.
func (s *seat) begin() bool {
	s.crowd.mu.Lock()
	defer s.crowd.mu.Unlock()
	s.working = !s.gone
	return s.working
}

// idle notes that the request was answered. The connection may carry another one.
func (s *seat) idle() {
	c := s.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.seats, s); i >= 0 {
		c.seats = append(slices.Delete(c.seats, i, i+1), s)
		s.working, s.served, s.since = false, true, time.Now()
		select {
		case c.freed <- struct{}{}:
		default:
		}
	}
}

type seatKey struct{}

// ofConn keeps the seat of a connection in the context of its requests.
func (c *crowd) ofConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, seatKey{}, conn)
}

// changed is told of every new state of a connection.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	s, ok := conn.(*seat)
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
func (c *crowd) empty(within time.Duration) bool {
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
// sent away. A handler that is mounted elsewhere has no seats.
func begins(ctx context.Context) bool {
	s, ok := ctx.Value(seatKey{}).(*seat)
	return !ok || s.begin()
}
