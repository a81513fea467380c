package redis_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	client "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/redis"
)

// cutter makes connections that lose one answer when it is armed.
type cutter struct {
	armed atomic.Bool
	of    string // what the command contains whose answer is lost; "" for any
	lost  func() // is called when an answer is lost, if it is not nil
}

// configure has a client connect to the server at a place.
func (c *cutter) configure(place string) func(*client.Options) {
	path := strings.TrimPrefix(place, "unix://")
	return func(o *client.Options) {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			nc, err := net.Dial("unix", path)
			return &cutConn{Conn: nc, by: c}, err
		}
	}
}

// cutConn is such a connection.
type cutConn struct {
	net.Conn
	by  *cutter
	cut atomic.Bool // the next answer is lost
}

func (c *cutConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("evalsha")) && bytes.Contains(b, []byte(c.by.of)) && c.by.armed.CompareAndSwap(true, false) {
		c.cut.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b) // so the server has carried out the command
	if err == nil && c.cut.Load() {
		_ = c.Close()
		if c.by.lost != nil {
			c.by.lost()
		}
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// Rule: a call whose answer is lost with its connection is answered as if nothing had happened, and the
// server carries it out once.
func TestAnswerIsLost(t *testing.T) {
	url(t)
	var c cutter
	q := open(t, shared.url, redis.Options{Configure: c.configure(shared.url)})
	lose := func() { c.armed.Store(true) }
	lost := func() { require.False(t, c.armed.Load(), "no answer was lost") }
	signed(t, q) // loads the script

	lose()
	id := pawl.NewID(q.Now())
	done, err := q.Enqueue(t.Context(), &pawl.Envelope{ID: id, Kind: "k", Payload: []byte("once"), Priority: 1, MaxRetries: 1})
	require.NoError(t, err)
	lost()
	require.Equal(t, []pawl.Enqueued{{ID: id}}, done)
	require.Equal(t, pawl.Counts{Ready: 2}, countsOf(t, q))

	lose()
	l := fetch(t, q)
	lost()
	require.Equal(t, id, l.ID)
	require.Equal(t, "once", string(l.Payload))
	require.Equal(t, pawl.Counts{Ready: 1, Leased: 1}, countsOf(t, q))

	lose()
	require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
	lost()
	e, err := q.Job(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, 1, e.Attempts)
	require.Len(t, e.History, 1)
	require.Equal(t, pawl.Counts{Ready: 2}, countsOf(t, q))
}

// Rule: if a try whose answer was lost is followed by a try that the server refuses, the outcome is unknown: the
// first try may have been carried out.
func TestRefusedAfterAnswerIsLost(t *testing.T) {
	url(t)
	s, err := startServer(t.TempDir())
	require.NoError(t, err)
	defer s.Stop()
	admin := connect(t, s.url)
	permit := func(sign string) {
		require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "default", sign+"evalsha", sign+"eval").Err())
	}
	c := cutter{of: "this job", lost: func() { permit("-") }} // the queue itself sends commands, too
	q := open(t, s.url, redis.Options{Configure: c.configure(s.url)})
	signed(t, q) // loads the script
	c.armed.Store(true)
	done, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Payload: []byte("this job")})
	require.False(t, c.armed.Load(), "no answer was lost")
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	require.ErrorContains(t, err, "NOPERM")
	require.Len(t, done, 1)
	permit("+")
	_, err = q.Job(t.Context(), done[0].ID) // it was stored
	require.NoError(t, err)
}

// during is a condition during whose first evaluation something happens.
type during struct {
	pawl.Filter
	happens func()
}

func (d *during) Matches(e *pawl.Envelope) bool {
	if d.happens != nil {
		d.happens()
		d.happens = nil
	}
	return d.Filter.Matches(e)
}

// Rule: a condition is evaluated on the job in the state in which the call changes it. If another process
// changes the job in between, the condition is evaluated again.
func TestJobMovesDuringCondition(t *testing.T) {
	o := redis.Options{Name: newName()}
	q, other := open(t, url(t), o), open(t, url(t), o)
	id := signed(t, q)
	ready := &during{Filter: pawl.Filter{State: pawl.Ready}, happens: func() { fetch(t, other) }}
	errs, err := q.Change(t.Context(), pawl.Change{Verb: pawl.VerbCancel, If: ready}, id)
	require.NoError(t, err)
	require.ErrorIs(t, errs[0], pawl.ErrNotEligible)
	e, err := q.Job(t.Context(), id)
	require.NoError(t, err)
	require.False(t, e.Cancelled)
}
