package handlers

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// counted is a server that counts the connections made to it.
func counted(t *testing.T, address string) (server *httptest.Server, connections *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("this machine has no second address to itself: %v", err)
	}
	connections = new(atomic.Int32)
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Listener.Close()
	server.Listener = l
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server, connections
}

func port(t *testing.T, server *httptest.Server) string {
	t.Helper()
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	return u.Port()
}

// Rule: by default no address of this machine is reached, by whatever name; the error is permanent
// and says what to do.
func TestForbiddenByDefault(t *testing.T) {
	server, connections := counted(t, "127.0.0.1:0")
	s := newSender(t, &HTTPOptions{})
	s.dialer.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		switch host { // what getaddrinfo of common C libraries makes of them
		case "localhost", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "rebind.example.com":
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return nil, &net.DNSError{Name: host, IsNotFound: true}
	}
	for _, host := range []string{"127.0.0.1", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "localhost", "LOCALHOST.",
		"rebind.example.com", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[0:0:0:0:0:0:0:1]"} {
		err := s.Send(t.Context(), jobOf(Request{URL: "http://" + host + ":" + port(t, server)}))
		require.ErrorContains(t, err, "must not be reached", host)
		require.ErrorContains(t, err, "allow its range")
		require.True(t, pawl.IsPermanent(err), host)
	}
	require.Zero(t, connections.Load())
}

// Rule: a name is resolved once for each connection, and the connection goes to the checked
// address, even if the name server changes its answer.
func TestRebinding(t *testing.T) {
	good, toGood := counted(t, "127.0.0.2:0")
	evil, toEvil := counted(t, "127.0.0.1:"+port(t, good)) // another address, the same port
	s := newSender(t, &HTTPOptions{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}})
	asked := 0
	s.dialer.lookup = func(context.Context, string) ([]netip.Addr, error) {
		asked++
		if asked == 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	job := jobOf(Request{URL: "http://example.com:" + port(t, evil)})
	require.NoError(t, s.Send(t.Context(), job))
	require.Equal(t, 1, asked)
	require.Equal(t, int32(1), toGood.Load())

	s.transport.CloseIdleConnections()
	err := s.Send(t.Context(), job)
	require.ErrorContains(t, err, "127.0.0.1 is this machine")
	require.True(t, pawl.IsPermanent(err))
	require.Zero(t, toEvil.Load())
}

// Rule: a host with a forbidden address among public ones is refused.
func TestMixedAnswer(t *testing.T) {
	good, connections := counted(t, "127.0.0.2:0")
	s := newSender(t, &HTTPOptions{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}})
	s.dialer.lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("10.0.0.1")}, nil
	}
	err := s.Send(t.Context(), jobOf(Request{URL: "http://example.com:" + port(t, good)}))
	require.ErrorContains(t, err, "10.0.0.1")
	require.True(t, pawl.IsPermanent(err))
	require.Zero(t, connections.Load())
}

// Rule: if an address does not answer, the next one is tried.
func TestNextAddress(t *testing.T) {
	good, connections := counted(t, "127.0.0.2:0")
	s := newSender(t, nil)
	s.dialer.lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.3"), netip.MustParseAddr("127.0.0.2")}, nil
	}
	require.NoError(t, s.Send(t.Context(), jobOf(Request{URL: "http://example.com:" + port(t, good)})))
	require.Equal(t, int32(1), connections.Load())
}

// Rule: the machine's own public address is refused.
func TestOwnAddressIsForbidden(t *testing.T) {
	s := newSender(t, &HTTPOptions{})
	s.dialer.own = func(a netip.Addr) bool { return a == netip.MustParseAddr("93.184.216.34") }
	err := s.Send(t.Context(), jobOf(Request{URL: "http://93.184.216.34"}))
	require.ErrorContains(t, err, "93.184.216.34 must not be reached: 93.184.216.34 is this machine")
	require.True(t, pawl.IsPermanent(err))
}

// Rule: a connection has a deadline, however slow the name server is and however many addresses it
// returns, even after the request was canceled.
func TestConnectionHasADeadline(t *testing.T) {
	s := newSender(t, &HTTPOptions{ConnectTimeout: time.Millisecond})
	s.dialer.lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.dialer.dial(context.WithoutCancel(t.Context()), "tcp", "example.com:80")
		done <- err
	}()
	require.ErrorIs(t, wait(t, done), context.DeadlineExceeded)
}

// Rule: an address that does not answer leaves time for the next ones, and has at least 2 s.
func TestShareOfAnAddress(t *testing.T) {
	for _, c := range []struct {
		left time.Duration
		n    int
		want time.Duration
	}{
		{10 * time.Second, 1, 10 * time.Second},
		{10 * time.Second, 2, 5 * time.Second},
		{10 * time.Second, 16, 2 * time.Second},
		{-time.Second, 3, 2 * time.Second}, // the deadline of the whole is what ends it
	} {
		require.Equal(t, c.want, share(c.left, c.n), "%v for %d", c.left, c.n)
	}
}

// Rule: all addresses of a host are checked, and the first 16 are tried.
func TestManyAddresses(t *testing.T) {
	var addresses []netip.Addr
	for i := range 4000 {
		addresses = append(addresses, netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(i)}))
	}
	s := newSender(t, nil)
	s.dialer.lookup = func(context.Context, string) ([]netip.Addr, error) { return addresses, nil }
	closed, connections := counted(t, "127.0.0.2:0") // where there is that one, there are all of 127.0.0.0/8
	to := Request{URL: "http://example.com:" + port(t, closed)}
	closed.Close()
	err := s.Send(t.Context(), jobOf(to))
	require.ErrorContains(t, err, "127.1.0.15")
	require.NotContains(t, err.Error(), "127.1.0.16")
	require.Zero(t, connections.Load())

	addresses[3999] = netip.MustParseAddr("10.0.0.1")
	err = s.Send(t.Context(), jobOf(to))
	require.ErrorContains(t, err, "10.0.0.1 is a private network")
	require.True(t, pawl.IsPermanent(err))
}

// Rule: Hosts and Ports narrow what may be reached; AllowHosts widens it.
func TestHostsAndPorts(t *testing.T) {
	server, _ := counted(t, "127.0.0.1:0")
	to := "http://Example.com.:" + port(t, server)
	number := server.Listener.Addr().(*net.TCPAddr).Port
	for _, c := range []struct {
		rule string
		opts HTTPOptions
		says string
	}{
		{"a trusted name may lead anywhere", HTTPOptions{AllowHosts: []string{"example.COM"}}, ""},
		{"another name may not", HTTPOptions{AllowHosts: []string{"www.example.com"}}, "must not be reached"},
		{"a name that is listed", HTTPOptions{Allow: loopback, Hosts: []string{"example.com."}}, ""},
		{"one that is not", HTTPOptions{Allow: loopback, Hosts: []string{"example.org"}}, "not among the hosts"},
		{"a listed name has its addresses checked", HTTPOptions{Hosts: []string{"example.com"}}, "must not be reached"},
		{"a port that is listed", HTTPOptions{Allow: loopback, Ports: []int{443, number}}, ""},
		{"one that is not", HTTPOptions{Allow: loopback, Ports: []int{443}}, "not among the ports"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := newSender(t, &c.opts)
			s.dialer.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
				require.Equal(t, "example.com", host)
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			err := s.Send(t.Context(), jobOf(Request{URL: to}))
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.True(t, pawl.IsPermanent(err))
		})
	}
}

// Rule: a name that cannot be resolved is worth a retry.
func TestNoName(t *testing.T) {
	s := newSender(t, nil)
	s.dialer.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Name: host, IsTemporary: true}
	}
	err := s.Send(t.Context(), jobOf(Request{URL: "http://example.com"}))
	require.ErrorAs(t, err, new(*net.DNSError))
	require.False(t, pawl.IsPermanent(err))
}

// Rule: proxies from the environment are not used, because they would connect to unchecked
// addresses.
func TestNoProxy(t *testing.T) {
	require.Nil(t, newSender(t, nil).transport.Proxy)
}
