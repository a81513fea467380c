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
)

// Defaults of a [Sender].
const (
	DefaultConnectTimeout = 10 * time.Second // for a connection, and again for its TLS handshake
	DefaultRequestTimeout = time.Minute      // for a whole request, with its redirects and the body of its answer
	MaxRedirects          = 5                // followed at most
)

// maxRead is how many bytes of an answer's body are read. An answer that breaks off before
// is no success; one that goes on behind is not waited for.
const maxRead = 64 << 10

// HTTPOptions are the settings of a [Sender]. A nil *HTTPOptions, and every zero field,
// means the default.
type HTTPOptions struct {
	// Allow lists ranges of addresses that may be reached although they are not public, such
	// as 10.1.2.0/24. Every address that a job can reach in them counts as safe from it.
	Allow []netip.Prefix

	// AllowHosts lists names of hosts that may be reached whatever their addresses are. Who
	// answers for such a name decides where requests go.
	AllowHosts []string

	// Hosts lists the names of the only hosts that may be reached. Nil means any; an empty
	// list that is not nil is an error. Their addresses are checked like others.
	Hosts []string

	// Ports lists the only ports that may be reached. Nil means any; an empty list that is
	// not nil is an error.
	Ports []int

	// ConnectTimeout is for each connection, from the name of the host on and whatever number
	// of addresses that has, and for each TLS handshake. The default is DefaultConnectTimeout.
	ConnectTimeout time.Duration

	// RequestTimeout is for a whole request, where the job's own timeout is not shorter. The
	// default is DefaultRequestTimeout.
	RequestTimeout time.Duration

	// FollowNoRedirects makes every redirect a failure.
	FollowNoRedirects bool

	// UserAgent is sent unless a job sets its own. The default is "pawl".
	UserAgent string

	// TLS has certificate authorities and client certificates, which every server that a job
	// can reach may ask for. Certificates are always verified, and no version before 1.2 is
	// spoken.
	TLS *tls.Config
}

// Sender makes HTTP requests. Its methods are safe for use by several goroutines.
type Sender struct {
	transport *http.Transport
	dialer    *dialer
	timeout   time.Duration
	follow    bool
	agent     string
	now       func() time.Time // for dates in Retry-After
}

// NewSender makes a sender. Mistakes in the options are errors.
func NewSender(opts *HTTPOptions) (*Sender, error) {
	var o HTTPOptions
	if opts != nil {
		o = *opts
	}
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("make a sender of requests: %w", err)
	}
	s := &Sender{timeout: o.RequestTimeout, follow: !o.FollowNoRedirects, agent: o.UserAgent, now: time.Now}
	s.dialer = &dialer{allowed: slices.Clone(o.Allow), trusted: hostSet(o.AllowHosts), only: hostSet(o.Hosts),
		timeout: o.ConnectTimeout, lookup: lookupHost, own: isOwn}
	if len(o.Ports) > 0 {
		s.dialer.ports = make(map[int]bool)
		for _, port := range o.Ports {
			s.dialer.ports[port] = true
		}
	}
	s.transport = &http.Transport{
		Proxy:                  nil, // a proxy would connect to addresses that nobody here has checked
		DialContext:            s.dialer.dial,
		TLSClientConfig:        o.TLS,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    o.ConnectTimeout,
		IdleConnTimeout:        time.Minute,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    4,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // so that what is read is what was sent
	}
	return s, nil
}

// complete fills in the defaults and refuses mistakes.
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
			return fmt.Errorf("%q is not the name of a host; write it without scheme, port and wildcards", host)
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
		return errors.New("a timeout is negative; leave it out for its default")
	case o.TLS.InsecureSkipVerify:
		return errors.New("certificates are always verified; give the authority of your own ones by TLS.RootCAs")
	case strings.ContainsAny(o.UserAgent, "\r\n\x00"):
		return errors.New("the user agent has a line break in it")
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

// Close closes the connections that are kept for later requests.
func (s *Sender) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// errSlow is the cause when a request takes longer than the sender lets it.
var errSlow = errors.New("the request took longer than the worker's limit")

// Send is the handler of kind [HTTP]:
//
//	worker.Handle(w, handlers.HTTP, sender.Send)
//
// What it returns:
//
//   - nil: a status from 200 to 299, or one that the job calls OK
//   - a permanent error: the request is malformed or leads to what this worker does not
//     allow, or the answer is another status below 500
//   - another error: worth a retry, namely the statuses 408, 425, 429 and those from 500
//     on, after the time that the server asks for by Retry-After, at most MaxRetryAfter;
//     and everything that goes wrong on the way
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

// message is one request on the wire.
type message struct {
	method string
	to     *url.URL
	header http.Header
	body   []byte
}

// answer is what came back.
type answer struct {
	status *StatusError
	header http.Header
}

// exchange sends a message, and what redirects make of it, and returns the last answer. A
// redirect whose status is among ok is a success, and not followed.
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
	if response.StatusCode == http.StatusSwitchingProtocols { // nobody asked for that; its body does not end with ctx
		return &answer{&StatusError{Status: response.StatusCode, Target: where(m.to)}, response.Header}, nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxRead))
	if err != nil && response.StatusCode < 300 {
		return nil, failed(ctx, m, fmt.Errorf("read the answer: %w", err)) // the status alone may be half of a success
	}
	shown := strings.ToValidUTF8(string(text), "?")
	return &answer{&StatusError{response.StatusCode, where(m.to), pawl.Clip(shown, maxBodyText)}, response.Header}, nil
}

// failed is the error of a message that was not answered.
func failed(ctx context.Context, m *message, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("%s %s: %w", m.method, where(m.to), err)
}
