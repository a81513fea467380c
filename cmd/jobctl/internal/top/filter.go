package top

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// filter is what the user typed after the slash. Queue and kind are exact, and the queue applies
// them; the words are matched here.
type filter struct {
	queue, kind string
	words       []string // in lower case; a job must contain all of them
}

func (f filter) empty() bool { return f.queue == "" && f.kind == "" && len(f.words) == 0 }

// parseFilter reads queue=NAME, kind=NAME and words, in any order. A value with spaces is in
// double quotes.
func parseFilter(text string) (filter, error) {
	var f filter
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var field, value string
		for _, name := range []string{"queue", "kind"} {
			if rest, found := strings.CutPrefix(text, name+"="); found {
				field, text = name, rest
			}
		}
		if strings.HasPrefix(text, `"`) {
			quoted, err := strconv.QuotedPrefix(text)
			if err != nil {
				return filter{}, errors.New(`a text that begins with " must end with "`)
			}
			value, _ = strconv.Unquote(quoted) // a quoted prefix can always be unquoted
			text = text[len(quoted):]
		} else {
			end := strings.IndexByte(text, ' ')
			if end < 0 {
				end = len(text)
			}
			value, text = text[:end], text[end:]
		}
		switch field {
		case "queue":
			f.queue = value
		case "kind":
			f.kind = value
		default:
			f.words = append(f.words, strings.ToLower(value))
		}
	}
	return f, nil
}

// String returns the filter as typed. It may contain any bytes; see safe.
func (f filter) String() string {
	var parts []string
	if f.queue != "" {
		parts = append(parts, "queue="+quoted(f.queue))
	}
	if f.kind != "" {
		parts = append(parts, "kind="+quoted(f.kind))
	}
	for _, word := range f.words {
		parts = append(parts, quoted(word))
	}
	return strings.Join(parts, " ")
}

// quoted adds quotes around a text that would be misread without them.
func quoted(s string) string {
	if strings.ContainsAny(s, " \"=") || plain.Text(s) != s {
		return strconv.Quote(s)
	}
	return s
}

// query returns the part of the filter that the queue applies. The newest dead jobs come first.
func (f filter) query(state pawl.State) admin.Filter {
	q := admin.Filter{Filter: pawl.Filter{State: state, Queue: f.queue, Kind: f.kind}}
	if state == pawl.Dead {
		q.Order, q.Newest = pawl.OrderDied, true
	}
	return q
}

// matches reports whether a job contains all the words. An unreadable job is never hidden.
func (f filter) matches(job pawl.Listed) bool {
	if job.Err != nil {
		return true
	}
	e := job.Job
	text := []string{e.Queue, e.Kind, e.ID.String(), string(e.State), e.LastError()}
	if e.Death != nil {
		text = append(text, string(e.Death.Reason))
	}
	return f.hasWords(text...)
}

// queues returns the queues that are shown.
func (f filter) queues(all []pawl.QueueStats) (shown []pawl.QueueStats) {
	for _, q := range all {
		if (f.queue == "" || f.queue == q.Name) && f.hasWords(q.Name) {
			shown = append(shown, q)
		}
	}
	return shown
}

func (f filter) hasWords(texts ...string) bool {
	all := strings.ToLower(strings.Join(texts, "\n"))
	return !slices.ContainsFunc(f.words, func(word string) bool { return !strings.Contains(all, word) })
}
