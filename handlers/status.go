package handlers

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// MaxRetryAfter limits the delay that a server can ask for.
const MaxRetryAfter = 24 * time.Hour

// StatusError is the error of a request whose status is not a success.
type StatusError struct {
	Status int    // such as 503
	Target string // the last URL requested, without its query
	Body   string // the beginning of the response body, at most 2 KiB
}

const maxBodyText = 2 << 10

// Error returns one line, followed by the beginning of the body.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answered %d", e.Target, e.Status)
	if name := http.StatusText(e.Status); name != "" {
		text += " " + name
	}
	if e.Body != "" {
		text += ":\n" + e.Body
	}
	return text
}

// judge returns the handler's result for a status: nil, an error to retry, or a permanent one.
func (r *Request) judge(e *StatusError, header http.Header, now time.Time) error {
	switch {
	case e.Status >= 200 && e.Status <= 299, slices.Contains(r.OK, e.Status):
		return nil
	case e.Status == http.StatusRequestTimeout, e.Status == http.StatusTooEarly,
		e.Status == http.StatusTooManyRequests, e.Status >= 500:
		if delay, ok := retryAfter(header.Get("Retry-After"), now); ok {
			return pawl.RetryAfter(delay, e)
		}
		return e
	}
	return pawl.Permanent(e)
}

// retryAfter parses a Retry-After header: seconds or a date (RFC 9110, 10.2.3).
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(MaxRetryAfter/time.Second) { // or too many digits
			return MaxRetryAfter, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(date.Sub(now), 0), MaxRetryAfter), true
}
