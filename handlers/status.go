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

// MaxRetryAfter bounds the delay that a server may ask for.
const MaxRetryAfter = 24 * time.Hour

// StatusError is the error of a request that was answered, and not by a success.
type StatusError struct {
	Status int    // of the answer, such as 503
	Target string // the URL that was asked last, without its query
	Body   string // the beginning of the answer's body, at most 2 KiB
}

const maxBodyText = 2 << 10

// Error is one line, and below it the beginning of the body.
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

// judge says what an answer means for its job: nil, an error that is worth a retry, or a
// permanent one.
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

// retryAfter reads the header of that name: seconds, or a date (RFC 9110, 10.2.3).
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(MaxRetryAfter/time.Second) { // as many digits as there may be
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
