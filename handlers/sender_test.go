package handlers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// newSender makes a sender that may reach the servers of tests, unless the options say what
// it may reach.
func newSender(t *testing.T, opts *HTTPOptions) *Sender {
	t.Helper()
	if opts == nil {
		opts = &HTTPOptions{Allow: loopback}
	}
	s, err := NewSender(opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// Rule: 2xx and the job's OK are success; 408, 425, 429 and 5xx are retried after Retry-After;
// everything else is permanent.
func TestStatuses(t *testing.T) {
	for _, c := range []struct {
		rule   string
		status int
		after  string // Retry-After
		ok     []int
		want   string
		delay  time.Duration
	}{
		{rule: "OK", status: 200, want: "done"},
		{rule: "the last success", status: 299, want: "done"},
		{rule: "no content", status: 204, want: "done"},
		{rule: "a redirect to nowhere", status: 302, want: "permanent"},
		{rule: "not modified", status: 304, want: "permanent"},
		{rule: "bad request", status: 400, want: "permanent"},
		{rule: "gone", status: 410, want: "permanent"},
		{rule: "gone, and that is fine", status: 410, ok: []int{404, 410}, want: "done"},
		{rule: "a timeout", status: 408, want: "retry"},
		{rule: "too early", status: 425, want: "retry"},
		{rule: "too many", status: 429, want: "retry"},
		{rule: "too many, with a time", status: 429, after: "120", want: "delay", delay: 2 * time.Minute},
		{rule: "a fault", status: 500, want: "retry"},
		{rule: "not there now, with a date", status: 503, after: "Wed, 21 Oct 2015 07:28:00 GMT", want: "delay", delay: 28 * time.Minute},
		{rule: "a time that is none", status: 503, after: "soon", want: "retry"},
		{rule: "a time on a permanent failure means nothing", status: 403, after: "120", want: "permanent"},
		{rule: "a status that nobody knows", status: 599, want: "retry"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.WriteHeader(c.status)
				if c.status > 204 {
					_, _ = io.WriteString(w, "why it is so")
				}
			})
			s := newSender(t, nil)
			s.now = func() time.Time { return time.Date(2015, 10, 21, 7, 0, 0, 0, time.UTC) }
			err := s.Send(t.Context(), jobOf(Request{URL: server.URL + "/a?secret=1", OK: c.ok}))
			if c.want == "done" {
				require.NoError(t, err)
				return
			}
			status := new(StatusError)
			require.ErrorAs(t, err, &status)
			require.Equal(t, c.status, status.Status)
			require.NotContains(t, err.Error(), "secret", "a query is for the server only")
			if c.status != 304 {
				require.Contains(t, err.Error(), "why it is so")
			}
			require.Equal(t, c.want == "permanent", pawl.IsPermanent(err))
			delay, ok := pawl.RetryDelay(err)
			require.Equal(t, c.want == "delay", ok)
			require.Equal(t, c.delay, delay)
		})
	}
}

// Rule: a delay is in seconds or a date, never negative and never above the limit.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2015, 10, 21, 7, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		value string
		delay time.Duration
		ok    bool
	}{
		{"", 0, false}, {"  ", 0, false}, {"-1", 0, false}, {"1.5", 0, false}, {"1s", 0, false}, {"+3", 0, false},
		{"0", 0, true}, {" 7 ", 7 * time.Second, true}, {"86400", MaxRetryAfter, true}, {"86401", MaxRetryAfter, true},
		{"9223372036854775807", MaxRetryAfter, true}, {strings.Repeat("9", 100), MaxRetryAfter, true},
		{"Wed, 21 Oct 2015 07:00:30 GMT", 30 * time.Second, true},
		{"Wed, 21 Oct 2015 06:00:00 GMT", 0, true},
		{"Fri, 21 Oct 2050 07:00:30 GMT", MaxRetryAfter, true},
		{"Wednesday, 21-Oct-15 07:00:30 GMT", 30 * time.Second, true},
	} {
		delay, ok := retryAfter(c.value, now)
		require.Equal(t, c.ok, ok, c.value)
		require.Equal(t, c.delay, delay, c.value)
	}
}

// Rule: a server receives the job's request and the default headers that it does not set.
func TestWhatAServerGets(t *testing.T) {
	var got *http.Request
	var body string
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got, body = r, string(text)
	})
	s := newSender(t, nil)
	job := jobOf(Request{Method: "PUT", URL: server.URL + "/a/b?c=d#e", Body: []byte("hello"),
		Headers: map[string]string{"x-trace": " 1 ", "Content-Type": "text/plain"}})
	require.NoError(t, s.Send(t.Context(), job))
	require.Equal(t, "PUT", got.Method)
	require.Equal(t, "/a/b?c=d", got.RequestURI)
	require.Equal(t, "hello", body)
	require.Equal(t, http.Header{"Content-Type": {"text/plain"}, "X-Trace": {"1"}, "User-Agent": {"pawl"},
		"Idempotency-Key": {job.ID.String()}, "Content-Length": {"5"}}, got.Header)

	require.NoError(t, s.Send(t.Context(), jobOf(Request{URL: server.URL,
		Headers: map[string]string{"idempotency-key": "own", "user-agent": "own"}})))
	require.Equal(t, "GET", got.Method)
	require.Equal(t, []string{"own"}, got.Header["Idempotency-Key"])
	require.Equal(t, []string{"own"}, got.Header["User-Agent"])
}

// Rule: an invalid request is refused permanently, and nothing is sent.
func TestRefusedRequests(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
	header := func(name, value string) Request {
		return Request{URL: server.URL, Headers: map[string]string{name: value}}
	}
	host := strings.TrimPrefix(server.URL, "http://")
	for _, c := range []struct {
		rule string
		r    Request
		says string
	}{
		{"no URL", Request{}, `scheme of the URL is ""`},
		{"a relative URL", Request{URL: "/a"}, `scheme of the URL is ""`},
		{"a file", Request{URL: "file:///etc/passwd"}, `"file"`},
		{"another protocol", Request{URL: "gopher://" + host}, `"gopher"`},
		{"no host", Request{URL: "http:///a"}, "names no host"},
		{"an opaque URL", Request{URL: "http:" + host}, "no host"},
		{"a user name", Request{URL: "http://user:pw@" + host}, "user name"},
		{"an empty user name", Request{URL: "http://@" + host}, "user name"},
		{"a line break in the URL", Request{URL: server.URL + "/\r\nX: y"}, "not valid"},
		{"a space in the host", Request{URL: "http://a b/"}, "not valid"},
		{"digits that look like digits", Request{URL: "http://１２７.0.0.1/"}, "invalid character"},
		{"a zone", Request{URL: "http://[fe80::1%25eth0]/"}, "invalid character"},
		{"a port that is none", Request{URL: "http://127.0.0.1:70000/"}, "port"},
		{"a method with a space", Request{URL: server.URL, Method: "GET /evil"}, "is not valid"},
		{"a tunnel", Request{URL: server.URL, Method: "CONNECT"}, "is not valid"},
		{"a status that is none", Request{URL: server.URL, OK: []int{1}}, "between 200 and 599"},
		{"a line break in a header", header("X-A", "a\r\nHost: evil"), "line break"},
		{"a bare line feed", header("X-A", "a\nb"), "line break"},
		{"a NUL in a header", header("X-A", "a\x00"), "line break"},
		{"a line break in a name", header("X-A\r\nHost", "evil"), "not a header name"},
		{"a colon in a name", header("X:A", "b"), "not a header name"},
		{"a name with a space", header("Host ", "evil"), "not a header name"},
		{"an empty name", header("", "b"), "not a header name"},
		{"the host", header("hOST", "evil"), "belongs to the connection"},
		{"the length", header("Content-Length", "0"), "belongs to the connection"},
		{"the framing", header("transfer-encoding", "chunked"), "belongs to the connection"},
		{"the connection", header("Connection", "close, X-A"), "belongs to the connection"},
		{"an upgrade", header("Upgrade", "websocket"), "belongs to the connection"},
		{"a header twice", Request{URL: server.URL, Headers: map[string]string{"x-a": "1", "X-A": "2"}}, "twice"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			err := newSender(t, nil).Send(t.Context(), jobOf(c.r))
			require.ErrorContains(t, err, c.says)
			require.True(t, pawl.IsPermanent(err), "%v", err)
			require.NotContains(t, err.Error(), "pw")
		})
	}
}

// Rule: failures of the connection are retried.
func TestNobodyAnswers(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	server.Close()
	err := newSender(t, nil).Send(t.Context(), jobOf(Request{URL: server.URL + "/?secret"}))
	require.ErrorContains(t, err, "GET "+server.URL)
	require.False(t, pawl.IsPermanent(err))
	require.NotContains(t, err.Error(), "secret")
}

// Rule: a truncated response is not a success.
func TestAnswerBreaksOff(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "only this")
	})
	err := newSender(t, nil).Send(t.Context(), jobOf(Request{URL: server.URL}))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.False(t, pawl.IsPermanent(err))
}

// Rule: an endless response is read up to the limit, and the error has a part of it.
func TestEndlessAnswer(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusBadRequest)
		}
		for {
			if _, err := w.Write([]byte(strings.Repeat("x", 4096))); err != nil {
				return
			}
		}
	})
	s := newSender(t, nil)
	require.NoError(t, s.Send(t.Context(), jobOf(Request{URL: server.URL})))
	err := s.Send(t.Context(), jobOf(Request{URL: server.URL + "/bad"}))
	require.ErrorContains(t, err, "400 Bad Request:\nxxx")
	require.Less(t, len(err.Error()), pawl.MaxErrorText)
}

// Rule: a server that switches protocols unasked and then stays silent does not block the handler.
func TestUnaskedUpgrade(t *testing.T) {
	gone := make(chan bool, 1)
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
		gone <- true
	})
	done := make(chan error, 1)
	go func() { done <- newSender(t, nil).Send(t.Context(), jobOf(Request{URL: server.URL})) }()
	err := wait(t, done)
	require.ErrorContains(t, err, "answered 101 Switching Protocols")
	require.True(t, pawl.IsPermanent(err))
	<-gone
}

// Rule: a request that takes too long is retried; the error of an ended context has its cause.
func TestSlowServer(t *testing.T) {
	reached := make(chan bool, 1)
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stop" {
			reached <- true
		}
		<-r.Context().Done()
	})
	err := newSender(t, &HTTPOptions{Allow: loopback, RequestTimeout: 50 * time.Millisecond}).Send(t.Context(), jobOf(Request{URL: server.URL}))
	require.ErrorIs(t, err, errSlow)
	require.False(t, pawl.IsPermanent(err))

	because := errors.New("the worker is stopping")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-reached; cancel(because) }()
	err = newSender(t, nil).Send(ctx, jobOf(Request{URL: server.URL + "/stop"}))
	require.ErrorIs(t, err, because)
	require.False(t, pawl.IsPermanent(err))
}

// Rule: certificates are verified, old versions of TLS are refused, and NewSender reports invalid
// options.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = quiet()
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())

	err := newSender(t, nil).Send(t.Context(), jobOf(Request{URL: server.URL}))
	require.ErrorAs(t, err, new(x509.UnknownAuthorityError))
	require.NoError(t, newSender(t, &HTTPOptions{Allow: loopback, TLS: &tls.Config{RootCAs: roots}}).Send(t.Context(), jobOf(Request{URL: server.URL})))

	old := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	old.Config.ErrorLog = quiet()
	old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	old.StartTLS()
	t.Cleanup(old.Close)
	roots.AddCert(old.Certificate())
	err = newSender(t, &HTTPOptions{Allow: loopback, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10}}).Send(t.Context(), jobOf(Request{URL: old.URL}))
	require.ErrorContains(t, err, "protocol version")
}

// Rule: NewSender reports invalid options.
func TestSenderMistakes(t *testing.T) {
	for _, c := range []struct {
		rule string
		opts HTTPOptions
		says string
	}{
		{"a range that is none", HTTPOptions{Allow: []netip.Prefix{{}}}, "not valid"},
		{"a range of mapped addresses, which none is compared with", HTTPOptions{Allow: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}}, "not valid"},
		{"a host with a port", HTTPOptions{AllowHosts: []string{"a:80"}}, "not a host name"},
		{"a pattern", HTTPOptions{Hosts: []string{"*.a"}}, "not a host name"},
		{"an empty host", HTTPOptions{Hosts: []string{""}}, "not a host name"},
		{"a port that is none", HTTPOptions{Ports: []int{0}}, "port 0"},
		{"a negative timeout", HTTPOptions{RequestTimeout: -1}, "negative"},
		{"certificates that are not verified", HTTPOptions{TLS: &tls.Config{InsecureSkipVerify: true}}, "always verified"},
		{"a line break in the agent", HTTPOptions{UserAgent: "a\r\nb"}, "line break"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			_, err := NewSender(&c.opts)
			require.ErrorContains(t, err, c.says)
		})
	}
}
