package dlq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// Headers of a job that [ToQueue] forwarded; they say how it died. Only [HeaderIdempotencyKey] is
// signed.
const (
	HeaderReason   = "pawl-dead-reason"   // a pawl.Reason
	HeaderQueue    = "pawl-dead-queue"    // the queue in which it died
	HeaderTime     = "pawl-dead-time"     // RFC 3339 with nanoseconds, in UTC
	HeaderAttempts = "pawl-dead-attempts" // completed attempts
	HeaderFailures = "pawl-dead-failures" // all failed attempts, including dropped ones
	HeaderHistory  = "pawl-dead-history"  // JSON: [{"n":attempt,"at":time,"error":text},…], oldest first

	// HeaderIdempotencyKey is the idempotency key that the job had, if any. A signature covers
	// it; see pawl.Keyring.Forwarded.
	HeaderIdempotencyKey = pawl.HeaderIdempotencyKey
)

// Source says how a forwarded job died.
type Source struct {
	pawl.Death
	Queue    string // where it died; Envelope.Origin is the queue that accepted it first
	Attempts int    // completed attempts there

	// History holds the newest failed attempts that fit into the headers, oldest first. If a job
	// died and was forwarded repeatedly, it covers all its queues.
	History []pawl.Failure

	// Failures counts all failed attempts; Failures - len(History) were dropped.
	Failures int

	IdempotencyKey string // of the dead job, if any
}

// SourceOf returns how a job that [ToQueue] forwarded died. ok is false for a job that was not
// forwarded, or whose headers are invalid.
func SourceOf(e *pawl.Envelope) (s Source, ok bool) {
	h := e.Headers
	at, err := time.Parse(time.RFC3339Nano, h[HeaderTime])
	if err != nil {
		return Source{}, false
	}
	s.Death = pawl.Death{Reason: pawl.Reason(h[HeaderReason]), At: at}
	s.Queue, s.IdempotencyKey = h[HeaderQueue], h[HeaderIdempotencyKey]
	attempts, err1 := strconv.ParseUint(h[HeaderAttempts], 10, 31)
	failures, err2 := strconv.ParseUint(h[HeaderFailures], 10, 31)
	if err1 != nil || err2 != nil {
		return Source{}, false
	}
	s.Attempts, s.Failures = int(attempts), int(failures)
	var entries []entry
	if err := json.Unmarshal([]byte(h[HeaderHistory]), &entries); err != nil || len(entries) > s.Failures {
		return Source{}, false
	}
	for _, entry := range entries {
		s.History = append(s.History, pawl.Failure{Attempt: entry.N, At: entry.At, Error: entry.Error})
	}
	if s.Queue == "" || s.Reason == "" {
		return Source{}, false
	}
	return s, true
}

// entry is one failed attempt in HeaderHistory.
type entry struct {
	N     int       `json:"n"`
	At    time.Time `json:"at"`
	Error string    `json:"error"`
}

// sourceHeaders returns the headers of a dead job and those of its death. To fit, it leaves out
// older failed attempts and shortens the newest.
func sourceHeaders(dead *pawl.Envelope) (map[string]string, error) {
	past, _ := SourceOf(dead) // zero unless it was forwarded before
	death := dead.Death
	if death == nil {
		death = &pawl.Death{}
	}
	h := maps.Clone(dead.Headers)
	if h == nil {
		h = make(map[string]string)
	}
	h[HeaderReason] = string(death.Reason)
	h[HeaderQueue] = dead.Queue
	h[HeaderTime] = death.At.UTC().Format(time.RFC3339Nano)
	h[HeaderAttempts] = strconv.Itoa(min(dead.Attempts, math.MaxInt32))
	h[HeaderFailures] = strconv.Itoa(min(past.Failures+max(dead.Failures, len(dead.History)), math.MaxInt32))
	h[HeaderHistory] = ""
	if dead.IdempotencyKey != "" {
		h[HeaderIdempotencyKey] = dead.IdempotencyKey
	}

	room := pawl.MaxHeaderBytes
	for key, value := range h {
		room -= len(key) + len(value)
	}
	if len(h) > pawl.MaxHeaders || room < len("[]") {
		return nil, &pawl.InvalidError{
			Field:  "headers",
			Reason: fmt.Sprintf("the job's %d headers leave no room for those that say how it died", len(dead.Headers)),
		}
	}
	h[HeaderHistory] = historyHeader(slices.Concat(past.History, dead.History), room)
	return h, nil
}

// historyHeader encodes the newest entries that fit into room bytes.
func historyHeader(history []pawl.Failure, room int) string {
	var newest []string // newest first
	room -= len("[]")
	for _, failure := range slices.Backward(history) {
		text := entryText(failure)
		for full, keep := failure.Error, len(failure.Error); len(newest) == 0 && len(text) > room && keep > len("…"); {
			// Escaping may lengthen the text, so it shrinks in proportion.
			keep = min(keep-1, keep*max(0, room)/len(text))
			failure.Error = ellipsis.Truncate(full, max(keep, len("…")))
			text = entryText(failure)
		}
		if len(text) > room {
			break
		}
		newest = append(newest, text)
		room -= len(text) + len(",")
	}
	slices.Reverse(newest)
	return "[" + strings.Join(newest, ",") + "]"
}

func entryText(f pawl.Failure) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a header is not HTML
	if err := enc.Encode(entry{f.Attempt, f.At.UTC(), f.Error}); err != nil {
		return strings.Repeat(" ", pawl.MaxHeaderBytes+1) // a year after 9999; too long to fit
	}
	return strings.TrimSuffix(b.String(), "\n")
}
