package admin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// newClient makes a client that has sent no request yet. trusted decides about the user whose
// process has the socket; nil trusts any.
func newClient(addr string, opts *DialOptions, trusted func(uid int) bool) (*client, error) {
	c := &client{addr: addr, timeout: defaultTimeout}
	if opts != nil {
		if c.token = opts.Token; checkToken(c.token) != nil {
			return nil, checkToken(c.token)
		}
		if opts.Timeout > 0 {
			c.timeout = opts.Timeout
		}
	}
	u, err := url.Parse(addr)
	if err != nil {
		return nil, invalid("address", "%q: %v", truncate(addr), err)
	}
	transport := &http.Transport{
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
		IdleConnTimeout:        5 * time.Second, // shorter than the app's timeout, so that no request is lost to it
		ExpectContinueTimeout:  queueTimeout + 5*time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
	}
	switch {
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		c.base = "http://localhost"
		transport.DisableKeepAlives = true // connecting is cheap, and idle connections would take places of others
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialSocket(ctx, u.Path, trusted)
		}
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "":
		c.base = strings.TrimSuffix(u.Scheme+"://"+u.Host+u.EscapedPath(), "/")
		if c.token != "" && u.Scheme == "http" && !loopback(u.Hostname()) {
			return nil, invalid("address", "%q would send the token unencrypted; use https, or a tunnel to this machine", truncate(addr))
		}
	default:
		return nil, invalid("address", "%q is none of unix:///folder/socket, http://host:port, https://host", truncate(addr))
	}
	c.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// dialSocket connects to a socket. It retries while the app's backlog is full.
func dialSocket(ctx context.Context, path string, trusted func(uid int) bool) (net.Conn, error) {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err == nil && trusted != nil {
			if uid, known := peerUser(conn); known && !trusted(uid) {
				_ = conn.Close()
				return nil, fmt.Errorf("%w: the socket %s is served by user %d, who has no right to the queue's file", ErrDistrusted, path, uid)
			}
		}
		if err == nil || !again(err) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(10 * time.Millisecond):
		}
	}
}
