package jetstream_test

import (
	"bytes"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/transport/transporttest"
	"github.com/gopawl/pawl/jetstream"
)

// cutter connects to a server. While it is armed, a connection breaks at the first ack: before the server has it, or
// before its answer has come.
type cutter struct {
	*server.Server
	armed  *atomic.Bool
	before bool
}

// InProcessConn implements [nats.InProcessConnProvider].
func (c cutter) InProcessConn() (net.Conn, error) {
	conn, err := c.Server.InProcessConn()
	return &cut{Conn: conn, by: c}, err
}

type cut struct {
	net.Conn
	by     cutter
	broken atomic.Bool
}

func (c *cut) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("+ACK")) && c.by.armed.CompareAndSwap(true, false) {
		c.broken.Store(true)
		if !c.by.before {
			_, _ = c.Conn.Write(b)
		}
		return 0, errors.Join(errors.New("cut"), c.Conn.Close())
	}
	return c.Conn.Write(b)
}

func (c *cut) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.broken.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// Rule: an ack whose outcome is unknown can be repeated while the lease lasts, whether the server has carried it out or
// not. Then the job is done, and does not run again.
func TestAckAgain(t *testing.T) {
	for name, before := range map[string]bool{"not carried out": true, "carried out": false} {
		t.Run(name, func(t *testing.T) {
			s, release := use(t, t.TempDir())
			defer release()
			connected := make(chan struct{}, 1)
			c := cutter{s, new(atomic.Bool), before}
			q, err := jetstream.Open(t.Context(), "nats://in-process", &jetstream.Options{
				Logger: hclog.NewNullLogger(), Timeout: transporttest.Timeout,
				NATS: []nats.Option{nats.InProcessServer(c), nats.ReconnectHandler(func(*nats.Conn) { connected <- struct{}{} })},
			})
			require.NoError(t, err)
			defer func() { require.NoError(t, q.Close()) }()
			transporttest.Signed(t, q)
			l := transporttest.Fetch(t, q)
			c.armed.Store(true)
			require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrUnknownOutcome)
			<-connected
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
			require.Equal(t, pawl.Counts{}, transporttest.Counts(t, q))
			require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrLeaseLost)
		})
	}
}
