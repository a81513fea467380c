package handlers

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// Defaults of a [Sender].
const (
	DefaultConnectTimeout = 10 * time.Second // for a connection, and again for its TLS handshake
	DefaultRequestTimeout = time.Minute      // for a whole request, including redirects and response bodies
	MaxRedirects          = 5                // per request
)

// maxRead limits how many bytes of a response body are read. A body that breaks off earlier
// fails the request; a longer one is not read further.
const maxRead = 64 << 10

// HTTPOptions configures a [Sender]. A nil *HTTPOptions and zero fields mean the defaults.
type HTTPOptions struct {
	// Allow lists address ranges that jobs may reach although they are not public, such as
	// 10.1.2.0/24.
	Allow []netip.Prefix

	// AllowHosts lists host names that jobs may reach whatever their addresses are. The owner
	// of such a name decides where requests go.
	AllowHosts []string

	// Hosts, if not nil, lists the only host names that jobs may reach. Their addresses are
	// still checked. An empty non-nil list is an error.
	Hosts []string

	// Ports, if not nil, lists the only ports that jobs may reach. An empty non-nil list is an
	// error.
	Ports []int

	// ConnectTimeout limits each connection, from name resolution to the last address, and
	// each TLS handshake. The default is DefaultConnectTimeout.
	ConnectTimeout time.Duration

	// RequestTimeout limits a whole request, unless the job's timeout is shorter. The default
	// is DefaultRequestTimeout.
	RequestTimeout time.Duration

	// NoRedirects makes every redirect a failure.
	NoRedirects bool

	// UserAgent is sent unless the job sets that header. The default is "pawl".
	UserAgent string

	// TLS holds certificate authorities and client certificates. Every server that a job can
	// reach may ask for a client certificate. Certificates are always verified, and TLS 1.2 is
	// the minimum.
	TLS *tls.Config
}

// Sender sends HTTP requests. Its methods are safe for concurrent use.
type Sender struct {
	transport *http.Transport
	dialer    *dialer
	timeout   time.Duration
	follow    bool
	agent     string
	now       func() time.Time // for Retry-After dates
}

// NewSender returns a sender, or an error for invalid options.
func NewSender(opts *HTTPOptions) (*Sender, error) {
	var o HTTPOptions
	if opts != nil {
		o = *opts
	}
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("create a request sender: %w", err)
	}
	s := &Sender{timeout: o.RequestTimeout, follow: !o.NoRedirects, agent: o.UserAgent, now: time.Now}
	s.dialer = &dialer{allowed: slices.Clone(o.Allow), trusted: hostSet(o.AllowHosts), only: hostSet(o.Hosts),
		ports: slices.Clone(o.Ports), timeout: o.ConnectTimeout, lookup: lookupHost, own: isOwn}
	s.transport = &http.Transport{
		Proxy:                  nil, // a proxy would connect to unchecked addresses
		DialContext:            s.dialer.dial,
		TLSClientConfig:        o.TLS,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    o.ConnectTimeout,
		IdleConnTimeout:        time.Minute,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    4,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // errors show the body as it was sent
	}
	return s, nil
}

// complete fills in defaults and refuses invalid options.
func (o *HTTPOptions) complete() error {
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = DefaultRequestTimeout
	}
	if o.UserAgent == "" {
		o.UserAgent = "pawl"
	}
	if o.TLS == nil {
		o.TLS = new(tls.Config)
	}
	o.TLS = o.TLS.Clone()
	o.TLS.MinVersion = max(o.TLS.MinVersion, tls.VersionTLS12)
	for _, prefix := range o.Allow {
		if !prefix.IsValid() || prefix.Addr().Is4In6() {
			return fmt.Errorf("allowed range %v is not valid; write it as 10.1.2.0/24 or fd00::/8", prefix)
		}
	}
	for _, host := range slices.Concat(o.AllowHosts, o.Hosts) {
		if host == "" || strings.ContainsAny(host, "/*@[] ") || strings.Count(host, ":") == 1 {
			return fmt.Errorf("%q is not a host name; write it without scheme, port and wildcards", host)
		}
	}
	for _, port := range o.Ports {
		if port < 1 || port > 65535 {
			return fmt.Errorf("port %d is not between 1 and 65535", port)
		}
	}
	switch {
	case o.Hosts != nil && len(o.Hosts) == 0:
		return errors.New("the list of hosts is empty, so no request could be sent; leave it nil to allow any host")
	case o.Ports != nil && len(o.Ports) == 0:
		return errors.New("the list of ports is empty, so no request could be sent; leave it nil to allow any port")
	case o.ConnectTimeout < 0 || o.RequestTimeout < 0:
		return errors.New("a timeout is negative; 0 means the default")
	case o.TLS.InsecureSkipVerify:
		return errors.New("certificates are always verified; add your own authority to TLS.RootCAs")
	case strings.ContainsAny(o.UserAgent, "\r\n\x00"):
		return errors.New("the user agent contains a line break or a NUL byte")
	}
	return nil
}

func hostSet(hosts []string) map[string]bool {
	if len(hosts) == 0 {
		return nil
	}
	set := make(map[string]bool)
	for _, host := range hosts {
		set[plainHost(host)] = true
	}
	return set
}

// Close closes idle connections.
func (s *Sender) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// errSlow is the cause of a request that exceeds RequestTimeout.
var errSlow = errors.New("the request took longer than the worker's limit")

// Send is the handler of kind [HTTP]:
//
//	worker.Handle(w, handlers.HTTP, sender.Send)
//
// It returns:
//
//   - nil: the status is 200 to 299 or in Request.OK
//   - an error that is retried: status 408, 425, 429 or 500 and above, after the delay of the
//     Retry-After header, at most MaxRetryAfter; and every failure to get a response
//   - a permanent error: any other status, a malformed request, or a target that this worker
//     does not allow
func (s *Sender) Send(ctx context.Context, job *pawl.Job[Request]) error {
	method, to, err := job.Args.parse()
	if err != nil {
		return pawl.Permanent(err)
	}
	header, err := job.Args.headerOf(s.agent, job.ID)
	if err != nil {
		return pawl.Permanent(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errSlow)
	defer cancel()
	answer, err := s.exchange(ctx, &message{method, to, header, job.Args.Body}, job.Args.OK)
	if err != nil {
		return err
	}
	return job.Args.judge(answer.status, answer.header, s.now())
}

// message is one request to send.
type message struct {
	method string
	to     *url.URL
	header http.Header
	body   []byte
}

// answer is a response.
type answer struct {
	status *StatusError
	header http.Header
}

// exchange sends a message, follows redirects whose status is not in ok, and returns the last
// answer.
func (s *Sender) exchange(ctx context.Context, m *message, ok []int) (*answer, error) {
	for followed := 0; ; followed++ {
		a, err := s.roundTrip(ctx, m)
		if err != nil || !s.follow || !isRedirect(a.status.Status) || slices.Contains(ok, a.status.Status) || a.header.Get("Location") == "" {
			return a, err
		}
		if followed == MaxRedirects {
			return nil, pawl.Permanent(fmt.Errorf("%s: more than %d redirects", where(m.to), MaxRedirects))
		}
		if m, err = m.redirected(a.status.Status, a.header.Get("Location")); err != nil {
			return nil, pawl.Permanent(err)
		}
	}
}

// roundTrip sends one message.
func (s *Sender) roundTrip(ctx context.Context, m *message) (*answer, error) {
	var body io.Reader
	if len(m.body) > 0 {
		body = bytes.NewReader(m.body)
	}
	request, err := http.NewRequestWithContext(ctx, m.method, m.to.String(), body)
	if err != nil {
		return nil, pawl.Permanent(fmt.Errorf("%s %s: %s", m.method, where(m.to), withoutURL(err)))
	}
	request.Header = m.header
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return nil, failed(ctx, m, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols { // never requested; reading its body would ignore ctx
		return &answer{&StatusError{Status: response.StatusCode, Target: where(m.to)}, response.Header}, nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxRead))
	if err != nil && response.StatusCode < 300 {
		return nil, failed(ctx, m, fmt.Errorf("read the answer: %w", err)) // a success needs its whole response
	}
	shown := strings.ToValidUTF8(string(text), "?")
	return &answer{&StatusError{response.StatusCode, where(m.to), ellipsis.Truncate(shown, maxBodyText)}, response.Header}, nil
}

// failed returns the error for a message without an answer.
func failed(ctx context.Context, m *message, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("%s %s: %w", m.method, where(m.to), err)
}
