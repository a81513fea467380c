package top

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/workflow"
)

// detail is everything about one job or run, on its own screen.
type detail struct {
	pager
	id    pawl.ID
	isRun bool           // a workflow run
	job   *pawl.Envelope // the job as last read; nil before the first reading, and for a run
	run   *workflow.Info // the run as last read; nil before the first reading, and for a job
	err   error          // why it could not be read, or that it is gone
}

// shownPayload limits what is shown of a payload, in bytes of its JSON.
const shownPayload = 16 << 10

// largePayload is the size from which a payload is not read again every second.
const largePayload = 64 << 10

// show sets the lines for a job.
func (d *detail) show(e *pawl.Envelope, at time.Time, utc bool) {
	d.job = e
	w := writer{at: at, utc: utc}
	w.facts(e)
	w.headers(e.Headers)
	w.payload(e.Payload)
	w.history(e)
	d.lines = w.lines
}

// writer makes the lines of a detail, and makes all text safe.
type writer struct {
	lines []string
	at    time.Time
	utc   bool
}

func (w *writer) line(format string, args ...any) {
	w.lines = append(w.lines, plain.Text(fmt.Sprintf(format, args...)))
}

// text adds the lines of a text behind an indent.
func (w *writer) text(indent, text string) {
	for line := range strings.Lines(text) {
		w.line("%s%s", indent, strings.TrimSuffix(line, "\n"))
	}
}

func (w *writer) fact(name, format string, args ...any) {
	w.line("%-11s %s", name, fmt.Sprintf(format, args...))
}

// timeFact adds a time, unless it is zero.
func (w *writer) timeFact(name string, t time.Time) {
	if !t.IsZero() {
		w.fact(name, "%s", w.moment(t))
	}
}

// moment returns a time with its distance from the time of the reading.
func (w *writer) moment(t time.Time) string {
	return fmt.Sprintf("%s  (%s)", zone(t, w.utc).Format("2006-01-02 15:04:05 MST"), distance(w.at, t))
}

// distance returns a time as seen from another: "3h ago", "in 12s". It never returns "in 0s".
func distance(from, t time.Time) string {
	if t.After(from) {
		return "in " + plain.Span(t.Sub(from)+time.Second-1)
	}
	return plain.Span(from.Sub(t)) + " ago"
}

func zone(t time.Time, utc bool) time.Time {
	if utc {
		return t.UTC()
	}
	return t.Local()
}

func (w *writer) facts(e *pawl.Envelope) {
	w.fact("id", "%s", e.ID)
	w.fact("kind", "%s", e.Kind)
	w.fact("queue", "%s", e.Queue)
	if e.Origin != e.Queue {
		w.fact("origin", "%s", e.Origin)
	}
	state := string(e.State)
	if e.Cancelled {
		state += ", cancelled"
	}
	w.fact("state", "%s", state)
	if e.Death != nil {
		w.fact("reason", "%s", e.Death.Reason)
		w.fact("died", "%s", w.moment(e.Death.At))
	}
	if e.State == pawl.Dead || e.State == pawl.Completed {
		w.fact("attempts", "%d of %d", e.Attempts, e.MaxRetries+1)
	} else {
		w.fact("attempt", "%d of %d", e.Attempt(), e.MaxRetries+1)
	}
	if e.Crashes > 0 {
		w.fact("crashes", "%d in a row", e.Crashes)
	}
	w.fact("priority", "%d", e.Priority)
	w.fact("created", "%s", w.moment(e.Created))
	w.timeFact("not before", e.NotBefore)
	w.timeFact("leased", e.LeasedSince)
	w.timeFact("deadline", e.Deadline)
	w.timeFact("completed", e.Completed)
	if e.Timeout != 0 {
		w.fact("timeout", "%v", e.Timeout)
	}
	if e.Policy != nil {
		w.fact("policy", "%v", e.Policy)
	}
	if e.UniqueKey != "" {
		w.fact("unique", "%s", e.UniqueKey)
	}
	if e.IdempotencyKey != "" {
		w.fact("idempotency", "%s", e.IdempotencyKey)
	}
	if e.KeyID != "" {
		w.fact("signed by", "key %s", e.KeyID)
	}
}

func (w *writer) headers(headers map[string]string) {
	if len(headers) == 0 {
		return
	}
	w.line("headers")
	for _, key := range slices.Sorted(maps.Keys(headers)) {
		w.line("  %s: %s", key, headers[key])
	}
}

// payload shows JSON for MessagePack, and bytes otherwise.
func (w *writer) payload(payload []byte) {
	w.fact("payload", "%s", plain.Size(int64(len(payload))))
	if len(payload) == 0 {
		return
	}
	text, whole, err := admin.DecodeJSON(payload, shownPayload)
	if err != nil {
		text, whole = []byte(hex.Dump(payload[:min(len(payload), shownPayload/4)])), len(payload) <= shownPayload/4
	} else if indented := new(bytes.Buffer); whole && json.Indent(indented, text, "", "  ") == nil {
		text = indented.Bytes()
	}
	w.text("  ", string(text))
	if !whole {
		w.line("  … truncated; jobctl job show prints all of it")
	}
}

func (w *writer) history(e *pawl.Envelope) {
	if e.Failures == 0 {
		w.fact("history", "no failed attempt")
		return
	}
	w.fact("history", "failed attempts: %d, the newest first", e.Failures)
	for _, f := range slices.Backward(e.History) {
		w.line("  attempt %d  %s", f.Attempt, w.moment(f.At))
		w.text("    ", strings.TrimRight(f.Error, "\n"))
		w.text("    ", strings.TrimRight(f.Stack, "\n"))
	}
	if dropped := e.Failures - len(e.History); dropped > 0 {
		w.line("  %d older ones are no longer kept", dropped)
	}
}
