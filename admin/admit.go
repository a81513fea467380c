package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
)

var errToken = errors.New("the token is missing or wrong")

// checkToken rejects a token that a header cannot carry unchanged.
func checkToken(token string) error {
	for i := 0; i < len(token); i++ {
		if c := token[i]; c <= ' ' || c >= 0x7f {
			return invalid("Token", "byte %d is white space, a control character, or not ASCII; a token is plain text without spaces", i+1)
		}
	}
	return nil
}

// admit checks the host name, the origin and the token of a request.
func (h *handler) admit(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if !slices.ContainsFunc(h.opts.Hosts, func(own string) bool { return strings.EqualFold(own, host) }) {
		return fmt.Errorf("%w: %q is not one of its host names; the app lists them in HandlerOptions.Hosts", ErrDenied, truncate(host))
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "none", "same-origin":
	default:
		return fmt.Errorf("%w: the request comes from a page of another site", ErrDenied)
	}
	if h.opts.NoAuth {
		return nil
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	hash := sha256.Sum256([]byte(given))
	if same := subtle.ConstantTimeCompare(hash[:], h.token[:]) == 1; !ok || !same || given == "" {
		return fmt.Errorf("%w: %w", ErrDenied, errToken)
	}
	return nil
}

// body reads a body within a time limit. Leave frees the slot of a large one; it is nil
// for a small one.
func (h *handler) body(out *sink, r *http.Request) (b []byte, leave func(), err error) {
	if r.Method == http.MethodGet {
		if r.ContentLength != 0 {
			return nil, nil, invalid("body", "a GET has none")
		}
		return []byte("{}"), nil, nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, nil, &refusal{http.StatusUnsupportedMediaType, codeType, fmt.Sprintf("body of type %q; send it as application/json", truncate(kind))}
	}
	if r.ContentLength > h.opts.MaxBody {
		return nil, nil, h.tooLarge(r.ContentLength)
	}
	if r.ContentLength > smallBody || r.ContentLength < 0 {
		if leave, err = h.large.enter(r.Context()); err != nil {
			return nil, nil, err
		}
		out.readWithin(h.opts.MaxBody)
	}
	b, err = readAll(http.MaxBytesReader(out.w, r.Body, h.opts.MaxBody), r.ContentLength)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, leave, h.tooLarge(-1)
	}
	if err != nil {
		return nil, leave, invalid("body", "it did not arrive completely and in time")
	}
	out.readDone()
	return b, leave, nil
}

func (h *handler) tooLarge(size int64) error {
	is := "too many"
	if size >= 0 {
		is = fmt.Sprint(size)
	}
	return fmt.Errorf("%w: the body has %s bytes, the limit is %d; send fewer jobs at a time", pawl.ErrBatchTooLarge, is, h.opts.MaxBody)
}
