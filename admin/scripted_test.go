package admin

import (
	"context"
	"io"
	"iter"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// scripted is an Admin that does what a test defines. Anything else panics.
type scripted struct {
	Admin
	stats   func(context.Context) (Stats, error)
	list    func(context.Context, Query) (Page, error)
	do      func(context.Context, Action, []pawl.ID) ([]error, error)
	enqueue func(context.Context, []*pawl.Envelope) ([]pawl.Enqueued, error)
	check   func(context.Context) error
	backup  func(context.Context, io.Writer) error
	events  func(context.Context) iter.Seq2[Event, error]
}

func (s *scripted) Stats(ctx context.Context) (Stats, error) {
	if s.stats == nil {
		return Stats{Stats: pawl.Stats{Storage: pawl.Storage{Path: "jobs.db", Size: 4096}}}, nil
	}
	return s.stats(ctx)
}

func (s *scripted) List(ctx context.Context, q Query) (Page, error) { return s.list(ctx, q) }

func (s *scripted) Do(ctx context.Context, a Action, ids ...pawl.ID) ([]error, error) {
	return s.do(ctx, a, ids)
}

func (s *scripted) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	return s.enqueue(ctx, jobs)
}

func (s *scripted) Check(ctx context.Context) error { return s.check(ctx) }

func (s *scripted) Backup(ctx context.Context, w io.Writer) error { return s.backup(ctx, w) }

func (s *scripted) Events(ctx context.Context) iter.Seq2[Event, error] { return s.events(ctx) }

// piped is a server without a network: connections are pipes, so that its deadlines pass without
// real time in a bubble of testing/synctest.
type piped struct {
	t       *testing.T
	conns   chan net.Conn
	closed  chan struct{}
	close   sync.Once
	limiter *limiter
	http    *http.Server
	end     context.CancelFunc // of the streams
}

func (p *piped) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *piped) Close() error {
	p.close.Do(func() { close(p.closed) })
	return nil
}

func (p *piped) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// newPiped serves a as Serve does, with that many connections.
func newPiped(t *testing.T, a Admin, limit int) *piped {
	t.Helper()
	p := &piped{t: t, conns: make(chan net.Conn), closed: make(chan struct{})}
	streams, end := context.WithCancel(context.Background())
	p.end = end
	p.limiter = newLimiter(p, limit, connGrace, func(net.Conn) bool { return true })
	p.http = newServer(newHandler(a, &HandlerOptions{NoAuth: true, Logger: hclog.NewNullLogger()}, streams), p.limiter, context.Background(), hclog.NewNullLogger())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = p.http.Serve(p.limiter)
	}()
	t.Cleanup(func() {
		end()
		_ = p.limiter.Close()
		_ = p.http.Close()
		<-served
		require.True(t, p.limiter.empty(closeGrace), "a request is left behind")
	})
	return p
}

// connect returns the client's end of a new connection.
func (p *piped) connect() net.Conn {
	p.t.Helper()
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
	case <-p.closed:
		p.t.Fatal("the server is closed")
	}
	return ours
}

// client returns a client of the server.
func (p *piped) client() *client {
	p.t.Helper()
	c, err := newClient("unix:///pipe", nil, nil)
	require.NoError(p.t, err)
	c.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case p.conns <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return c
}
