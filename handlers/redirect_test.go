package handlers

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a redirect is followed only if it keeps the meaning of the request and sends nothing of the
// job to another host.
func TestRedirected(t *testing.T) {
	for _, c := range []struct {
		rule     string
		method   string
		from, to string
		status   int
		body     string
		want     string // method, URL and body
		sent     bool   // whether the job's headers are sent
		says     string
	}{
		{rule: "a look moves on", method: "GET", from: "http://a/x", to: "/y?z", status: 301, want: "GET http://a/y?z ", sent: true},
		{rule: "found", method: "HEAD", from: "http://a/x", to: "y", status: 302, want: "HEAD http://a/y ", sent: true},
		{rule: "a relative one without scheme", method: "GET", from: "https://a/x", to: "//a/y", status: 302, want: "GET https://a/y ", sent: true},
		{rule: "done, the result is elsewhere", method: "POST", from: "http://a/x", to: "/y", status: 303, body: "b", want: "GET http://a/y ", sent: true},
		{rule: "do it there", method: "POST", from: "http://a/x", to: "/y", status: 307, body: "b", want: "POST http://a/y b", sent: true},
		{rule: "do it there from now on", method: "DELETE", from: "http://a/x", to: "/y", status: 308, want: "DELETE http://a/y ", sent: true},
		{rule: "to encryption", method: "POST", from: "http://a/x", to: "https://a/x", status: 308, body: "b", want: "POST https://a/x b", sent: true},
		{rule: "the same port, written", method: "GET", from: "https://a/x", to: "https://A:443/x", status: 301, want: "GET https://A:443/x ", sent: true},
		{rule: "another host receives nothing", method: "GET", from: "http://a/x", to: "http://b/x", status: 302, want: "GET http://b/x "},
		{rule: "a part of the host is another", method: "GET", from: "http://a.com/x", to: "http://w.a.com/x", status: 302, want: "GET http://w.a.com/x "},
		{rule: "another port is another host", method: "GET", from: "http://a/x", to: "http://a:81/x", status: 302, want: "GET http://a:81/x "},
		{rule: "the result on another host", method: "POST", from: "http://a/x", to: "http://b/x", status: 303, body: "b", want: "GET http://b/x "},

		{rule: "a POST does not become a GET", method: "POST", from: "http://a/x", to: "/y", status: 301, says: "does not say whether"},
		{rule: "nor a DELETE", method: "DELETE", from: "http://a/x", to: "/y", status: 302, says: "does not say whether"},
		{rule: "a body does not go to another host", method: "POST", from: "http://a/x", to: "http://b/x", status: 307, body: "b", says: "may not receive the job's body"},
		{rule: "from encryption to none", method: "GET", from: "https://a/x", to: "http://a/x", status: 302, says: "not encrypted"},
		{rule: "to another scheme", method: "GET", from: "http://a/x", to: "file:///etc/passwd", status: 302, says: `"file"`},
		{rule: "to a user name", method: "GET", from: "http://a/x", to: "http://u:p@b/", status: 302, says: "user name"},
		{rule: "to what is no URL", method: "GET", from: "http://a/x", to: "http://[", status: 302, says: "invalid URL"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			from, err := url.Parse(c.from)
			require.NoError(t, err)
			m := &message{c.method, from, http.Header{"Authorization": {"secret"}, "X-Key": {"secret"}, "Content-Type": {"a"}, "User-Agent": {"pawl"}}, []byte(c.body)}
			next, err := m.redirected(c.status, c.to)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, next.method+" "+next.to.String()+" "+string(next.body))
			require.Equal(t, c.sent, next.header["Authorization"] != nil)
			require.Equal(t, c.sent, next.header["X-Key"] != nil)
			require.Equal(t, "pawl", next.header.Get("User-Agent"))
			require.Equal(t, len(next.body) > 0 || c.status != 303 && c.sent, next.header["Content-Type"] != nil)
			require.Equal(t, "secret", m.header.Get("X-Key"), "the first message is not changed")
		})
	}
}

// Rule: redirects are followed up to the limit, each by the rules of the first request, and a
// repeated POST has its whole body.
func TestFollow(t *testing.T) {
	var got []string
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+string(body))
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		switch {
		case err != nil:
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		case n > 0:
			http.Redirect(w, r, "/"+strconv.Itoa(n-1), http.StatusTemporaryRedirect)
		}
	})
	s := newSender(t, nil)
	require.NoError(t, s.Send(t.Context(), jobOf(Request{Method: "POST", URL: server.URL + "/5", Body: []byte("b")})))
	require.Equal(t, []string{"POST /5 b", "POST /4 b", "POST /3 b", "POST /2 b", "POST /1 b", "POST /0 b"}, got)

	err := s.Send(t.Context(), jobOf(Request{URL: server.URL + "/6"}))
	require.ErrorContains(t, err, "more than 5 redirects")
	require.True(t, pawl.IsPermanent(err))

	err = s.Send(t.Context(), jobOf(Request{URL: server.URL + "/evil"}))
	require.ErrorContains(t, err, "169.254.169.254 is link-local")
	require.True(t, pawl.IsPermanent(err))

	got = nil
	require.NoError(t, s.Send(t.Context(), jobOf(Request{URL: server.URL + "/1", OK: []int{307}})))
	require.Equal(t, []string{"GET /1 "}, got, "a redirect that the job calls OK is not followed")

	s = newSender(t, &HTTPOptions{Allow: loopback, NoRedirects: true})
	err = s.Send(t.Context(), jobOf(Request{URL: server.URL + "/1"}))
	status := new(StatusError)
	require.ErrorAs(t, err, &status)
	require.Equal(t, 307, status.Status)
	require.True(t, pawl.IsPermanent(err))
}

// Rule: a redirect to another name is resolved and checked again.
func TestRedirectToName(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://inside.example.com/", http.StatusFound)
	})
	s := newSender(t, nil)
	s.dialer.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		if host != "inside.example.com" {
			return nil, &net.DNSError{Name: host, IsNotFound: true}
		}
		return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
	}
	err := s.Send(t.Context(), jobOf(Request{URL: server.URL}))
	require.ErrorContains(t, err, "10.0.0.1 is a private network")
	require.True(t, pawl.IsPermanent(err))
}
