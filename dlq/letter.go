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
)

// Headers of a job that [ToQueue] forwarded, which say how it died. They are not signed,
// except [HeaderIdempotencyKey].
const (
	HeaderReason   = "pawl-dead-reason"   // a pawl.Reason
	HeaderQueue    = "pawl-dead-queue"    // the queue in which it died
	HeaderTime     = "pawl-dead-time"     // RFC 3339 with nanoseconds, in UTC
	HeaderAttempts = "pawl-dead-attempts" // completed runs
	HeaderFailures = "pawl-dead-failures" // entries that its history had in all
	HeaderHistory  = "pawl-dead-history"  // JSON: [{"n":attempt,"at":time,"error":text},…], oldest first

	// HeaderIdempotencyKey is the idempotency key that the job had, if any. The signature of
	// a signed job covers it; see pawl.Keyring.Forwarded.
	HeaderIdempotencyKey = pawl.HeaderIdempotencyKey
)

// Letter is how a forwarded job died.
type Letter struct {
	pawl.Death
	Queue    string // in which it died; Envelope.Origin is the one that accepted it first
	Attempts int    // completed runs there

	// History is the newest of its failed runs, oldest first, as many as fit into the
	// headers. A job that died and was forwarded more than once has the runs of all its
	// lives.
	History []pawl.Failure

	// Failures is how many there were, so Failures - len(History) were dropped.
	Failures int

	IdempotencyKey string // that the job had, if any
}

// LetterOf reads how a job died that [ToQueue] forwarded. It reports false for one
// that was not forwarded, or whose headers somebody changed.
func LetterOf(e *pawl.Envelope) (l Letter, ok bool) {
	h := e.Headers
	at, err := time.Parse(time.RFC3339Nano, h[HeaderTime])
	if err != nil {
		return Letter{}, false
	}
	l.Death = pawl.Death{Reason: pawl.Reason(h[HeaderReason]), At: at}
	l.Queue, l.IdempotencyKey = h[HeaderQueue], h[HeaderIdempotencyKey]
	attempts, err1 := strconv.ParseUint(h[HeaderAttempts], 10, 31)
	failures, err2 := strconv.ParseUint(h[HeaderFailures], 10, 31)
	if err1 != nil || err2 != nil {
		return Letter{}, false
	}
	l.Attempts, l.Failures = int(attempts), int(failures)
	var entries []entry
	if err := json.Unmarshal([]byte(h[HeaderHistory]), &entries); err != nil || len(entries) > l.Failures {
		return Letter{}, false
	}
	for _, entry := range entries {
		l.History = append(l.History, pawl.Failure{Attempt: entry.N, At: entry.At, Error: entry.Error})
	}
	if l.Queue == "" || l.Reason == "" {
		return Letter{}, false
	}
	return l, true
}

// entry is one failed run in HeaderHistory.
type entry struct {
	N     int       `json:"n"`
	At    time.Time `json:"at"`
	Error string    `json:"error"`
}

// letterHeaders are the headers of a letter with those of its death. The newest
// failed run is shortened to fit, older ones are left out.
func letterHeaders(letter *pawl.Envelope) (map[string]string, error) {
	past, _ := LetterOf(letter) // zero unless it was forwarded before
	death := letter.Death
	if death == nil {
		death = &pawl.Death{}
	}
	h := maps.Clone(letter.Headers)
	if h == nil {
		h = make(map[string]string)
	}
	h[HeaderReason] = string(death.Reason)
	h[HeaderQueue] = letter.Queue
	h[HeaderTime] = death.At.UTC().Format(time.RFC3339Nano)
	h[HeaderAttempts] = strconv.Itoa(min(letter.Attempts, math.MaxInt32))
	h[HeaderFailures] = strconv.Itoa(min(past.Failures+max(letter.Failures, len(letter.History)), math.MaxInt32))
	h[HeaderHistory] = ""
	if letter.IdempotencyKey != "" {
		h[HeaderIdempotencyKey] = letter.IdempotencyKey
	}

	room := pawl.MaxHeaderBytes
	for key, value := range h {
		room -= len(key) + len(value)
	}
	if len(h) > pawl.MaxHeaders || room < len("[]") {
		return nil, &pawl.InvalidError{
			Field:  "headers",
			Reason: fmt.Sprintf("the %d of the letter leave no room for those that say how it died", len(letter.Headers)),
		}
	}
	h[HeaderHistory] = historyHeader(slices.Concat(past.History, letter.History), room)
	return h, nil
}

// historyHeader writes the newest entries that fit into room bytes.
func historyHeader(history []pawl.Failure, room int) string {
	var newest []string // newest first
	room -= len("[]")
	for _, failure := range slices.Backward(history) {
		text := entryText(failure)
		for whole, keep := failure.Error, len(failure.Error); len(newest) == 0 && len(text) > room && keep > len("…"); {
			// Escaping may make the text longer, so it shrinks in proportion.
			keep = min(keep-1, keep*max(0, room)/len(text))
			failure.Error = pawl.Clip(whole, max(keep, len("…")))
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
	enc.SetEscapeHTML(false) // a header is no web page
	if err := enc.Encode(entry{f.Attempt, f.At.UTC(), f.Error}); err != nil {
		return strings.Repeat(" ", pawl.MaxHeaderBytes+1) // a year beyond 9999: it does not fit
	}
	return strings.TrimSuffix(b.String(), "\n")
}
