package handlers

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
)

// HTTP is the kind of job that makes an HTTP request; [Sender.Send] handles it.
var HTTP = pawl.Define[Request]("pawl.http")

// Request is what a job of kind [HTTP] sends. The names of its fields are the same in a
// payload and in JSON, and a body may be given as a text.
type Request struct {
	Method string `msgpack:"method,omitempty" json:"method,omitempty"` // GET unless given

	// URL is absolute, of scheme http or https. It has no user name or password: whoever
	// lists jobs would see them in it. Put credentials into a header, if they may lie in the
	// queue's file at all.
	URL string `msgpack:"url" json:"url"`

	// Headers are sent as they are. Those that belong to the connection or to the way a
	// message is framed are refused, and Host is: it follows from the URL.
	Headers map[string]string `msgpack:"headers,omitempty" json:"headers,omitempty"`

	Body []byte `msgpack:"body,omitempty" json:"body,omitempty"`

	// OK lists statuses that mean success besides those from 200 to 299, such as 404 for a
	// DELETE. A redirect that is among them is not followed.
	OK []int `msgpack:"ok,omitempty" json:"ok,omitempty"`
}

// Check returns an error for a request that [Sender.Send] refuses whatever its options are.
// Call it before you enqueue a request that somebody else wrote: what is refused only when it
// runs lies in the file until then, with the credentials in it.
func (r *Request) Check() error {
	if _, _, err := r.parse(); err != nil {
		return err
	}
	_, err := r.headerOf("", pawl.ID{})
	return err
}

// parse checks a request and returns its method and where it goes. What it refuses can
// never be sent.
func (r *Request) parse() (method string, to *url.URL, err error) {
	method = r.Method
	if method == "" {
		method = http.MethodGet
	}
	if !isToken(method) || method == http.MethodConnect {
		return "", nil, fmt.Errorf("method %q cannot be sent; use GET, POST, PUT, PATCH, DELETE or another plain word", pawl.Clip(method, 40))
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

// parseURL reads an address that a request or a redirect names.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the URL cannot be read: " + withoutURL(err))
	}
	return u, checkURL(u)
}

func checkURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("the scheme of the URL is %q; use http or https", pawl.Clip(u.Scheme, 40))
	}
	if u.User != nil {
		return errors.New("the URL has a user name in it, which everybody sees who lists jobs; put credentials into the header Authorization")
	}
	host := u.Hostname()
	if host == "" {
		return errors.New("the URL names no host")
	}
	for _, c := range host {
		if c <= ' ' || c >= 0x7f || c == '%' {
			return fmt.Errorf("the host %q of the URL has a character that no host name has; write international names in ASCII (xn--…), and addresses without a zone", host)
		}
	}
	return nil
}

// withoutURL is what is wrong with a URL without the URL, which may have secrets in it.
func withoutURL(err error) string {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}

// where names the target of a request in errors: without the query, which may have secrets
// in it.
func where(u *url.URL) string {
	return pawl.Clip(u.Scheme+"://"+u.Host+u.EscapedPath(), 300)
}

// forbiddenHeaders belong to the connection or to the framing of a message (RFC 9110, 7.6.1),
// or say where a message goes: whoever sets them can have a proxy or a server see other
// requests than the one that was checked.
var forbiddenHeaders = []string{"Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive",
	"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// headerOf checks the headers of a request and returns them as they are sent.
func (r *Request) headerOf(agent string, id pawl.ID) (http.Header, error) {
	header := make(http.Header)
	for name, value := range r.Headers {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isToken(name):
			return nil, fmt.Errorf("%q is not the name of a header", pawl.Clip(name, 80))
		case slices.Contains(forbiddenHeaders, canonical):
			return nil, fmt.Errorf("the header %s belongs to the connection; a job cannot set it", canonical)
		case header[canonical] != nil:
			return nil, fmt.Errorf("the header %s is there twice, in different cases", canonical)
		}
		for i := 0; i < len(value); i++ {
			if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
				return nil, fmt.Errorf("the header %s has a line break or another control character in it", canonical)
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
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
