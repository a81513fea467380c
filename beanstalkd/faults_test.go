package beanstalkd_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/beanstalkd"
	"github.com/gopawl/pawl/internal/faults"
)

// faulty is the engine amid faults.
var faulty = faults.Engine{
	Open: func(ctx context.Context, place string) (faults.Queue, error) {
		return beanstalkd.Open(ctx, place, &beanstalkd.Options{Prefix: "faults", Lease: 2 * time.Second,
			MaxCrashes: beanstalkd.NoMaxCrashes, Timeout: 5 * time.Second, Logger: hclog.NewNullLogger()})
	},
	Unavailable: beanstalkd.ErrUnavailable,
}

// proxy forwards connections to a server, and cuts them.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	open     map[net.Conn]bool
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l, open: make(map[net.Conn]bool)}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.open[in], p.open[out] = true, true
			p.mu.Unlock()
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					p.close(in, out)
				}()
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close(); p.cut() })
	return p
}

func (p *proxy) close(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.open, c)
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
	clear(p.open)
}

// Rule: over a server with -b and -f0, no job is lost whose Enqueue returned nil, although workers
// are killed, the server is killed and restarted, and connections are cut.
func TestNothingIsLost(t *testing.T) {
	url(t)
	port, folder := "", t.TempDir()
	start := func() *server {
		s, err := startServer(port, "-b", folder, "-f0")
		require.NoError(t, err)
		return s
	}
	server := start()
	port = server.port // also after a restart
	defer func() { server.stop() }()
	p := newProxy(t, "127.0.0.1:"+port)
	accepted, _ := faulty.Run(t, "beanstalkd://"+p.listener.Addr().String(), faults.Faults{
		Cut: p.cut,
		Restart: func() {
			server.stop()
			server = start()
		},
	})
	require.Greater(t, accepted, faults.Jobs(t)/2)
}
