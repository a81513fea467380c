package handlers

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// HTTP is the kind of a job that sends an HTTP request; [Sender.Send] handles it.
var HTTP = pawl.Define[Request]("pawl.http")

// Request is the payload of a job of kind [HTTP]. The JSON names of the fields are also their
// names in the payload. In JSON a body may be a string.
type Request struct {
	Method string `msgpack:"method,omitempty" json:"method,omitempty"` // default GET

	// URL is absolute, with scheme http or https and without user name and password, which
	// job lists would show. Put credentials into a header, if the queue's file may hold them.
	URL string `msgpack:"url" json:"url"`

	// Headers are sent unchanged. Headers of the connection or of message framing are refused,
	// and so is Host, which follows from the URL.
	Headers map[string]string `msgpack:"headers,omitempty" json:"headers,omitempty"`

	Body []byte `msgpack:"body,omitempty" json:"body,omitempty"`

	// OK lists statuses that mean success besides 200 to 299, such as 404 for a DELETE. A
	// redirect in this list is not followed.
	OK []int `msgpack:"ok,omitempty" json:"ok,omitempty"`
}

// Check returns an error for a request that [Sender.Send] refuses whatever its options are.
// Check requests from others before enqueueing them: a request that is refused only when it
// runs stays in the file until then, with its credentials.
func (r *Request) Check() error {
	if _, _, err := r.parse(); err != nil {
		return err
	}
	_, err := r.headerOf("", pawl.ID{})
	return err
}

// parse returns the method and the target of a request that can be sent.
func (r *Request) parse() (method string, to *url.URL, err error) {
	method = r.Method
	if method == "" {
		method = http.MethodGet
	}
	if !isToken(method) || method == http.MethodConnect {
		return "", nil, fmt.Errorf("method %q is not valid; use GET, POST, PUT, PATCH, DELETE or another plain word", ellipsis.Truncate(method, 40))
	}
	if to, err = parseURL(r.URL); err != nil {
		return "", nil, err
	}
	for _, code := range r.OK {
		if code < 200 || code > 599 {
			return "", nil, fmt.Errorf("status %d in ok is not between 200 and 599", code)
		}
	}
	return method, to, nil
}

// parseURL parses the target of a request or a redirect.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the URL is not valid: " + withoutURL(err))
	}
	return u, checkURL(u)
}

func checkURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("the scheme of the URL is %q; use http or https", ellipsis.Truncate(u.Scheme, 40))
	}
	if u.User != nil {
		return errors.New("the URL contains a user name, which job lists would show; put credentials into the header Authorization")
	}
	host := u.Hostname()
	if host == "" {
		return errors.New("the URL names no host")
	}
	for _, c := range host {
		if c <= ' ' || c >= 0x7f || c == '%' {
			return fmt.Errorf("the host %q of the URL contains an invalid character; write international names in ASCII (xn--…), and addresses without a zone", host)
		}
	}
	return nil
}

// withoutURL returns the cause of err without the URL, which may contain secrets.
func withoutURL(err error) string {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}

// where names a target in errors, without the query, which may contain secrets.
func where(u *url.URL) string {
	return ellipsis.Truncate(u.Scheme+"://"+u.Host+u.EscapedPath(), 300)
}

// forbiddenHeaders belong to the connection or to message framing (RFC 9110, 7.6.1), or direct
// the message. With them a job could make a proxy or a server see a request other than the
// checked one.
var forbiddenHeaders = []string{"Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive",
	"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// headerOf returns the headers to send.
func (r *Request) headerOf(agent string, id pawl.ID) (http.Header, error) {
	header := make(http.Header)
	for name, value := range r.Headers {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isToken(name):
			return nil, fmt.Errorf("%q is not a header name", ellipsis.Truncate(name, 80))
		case slices.Contains(forbiddenHeaders, canonical):
			return nil, fmt.Errorf("the header %s belongs to the connection; a job cannot set it", canonical)
		case header[canonical] != nil:
			return nil, fmt.Errorf("the header %s is set twice, in different cases", canonical)
		}
		for i := 0; i < len(value); i++ {
			if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
				return nil, fmt.Errorf("the header %s contains a control character, such as a line break", canonical)
			}
		}
		header.Set(canonical, strings.Trim(value, " \t"))
	}
	if header["User-Agent"] == nil {
		header.Set("User-Agent", agent)
	}
	if header["Idempotency-Key"] == nil {
		header.Set("Idempotency-Key", id.String())
	}
	return header, nil
}

// isToken reports whether s is a token of RFC 9110, 5.6.2.
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
