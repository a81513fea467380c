package dashboard

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/dlq"
)

// pageSize is how many rows a page has.
const pageSize = 50

// lookTime limits how long one page searches. A page that has searched for so long shows what it has found,
// and a link that continues. It leaves the rest of 100 ms for one more read on a busy machine.
const lookTime = 30 * time.Millisecond

// selection is a filter of jobs, as read from the address of a page.
type selection struct {
	admin.Filter
	Group string // the fingerprint of the last error of dead jobs; "" is any
	all   bool   // there is no condition

	// As the user wrote them, for the form.
	QueueTexts, KindTexts, StateTexts, ReasonTexts        []string
	SinceText, UntilText, OlderText, DiedSince, DiedUntil string
	ErrorText, SortText, Members                          string // Members is a group of jobs
	NewestFirst                                           bool
}

// selection reads the filter of a request.
func (q *request) selection() (*selection, error) {
	f := q.Form
	s := &selection{
		QueueTexts: texts(f["queue"]), KindTexts: texts(f["kind"]), StateTexts: texts(f["state"]), ReasonTexts: texts(f["reason"]),
		SinceText: f.Get("since"), UntilText: f.Get("until"), OlderText: f.Get("older"), DiedSince: f.Get("died-since"), DiedUntil: f.Get("died-until"),
		ErrorText: f.Get("error"), SortText: f.Get("sort"), Members: f.Get("members"), NewestFirst: f.Get("newest") != "", Group: f.Get("group"),
	}
	s.Error, s.Payload, s.Newest, s.Order = s.ErrorText, texts(f["payload"]), s.NewestFirst, pawl.Order(s.SortText)
	s.Filter.Filter.Group = s.Members
	s.Queue, s.Queues = admin.OneOrMore[string](s.QueueTexts)
	s.Kind, s.Kinds = admin.OneOrMore[string](s.KindTexts)
	s.State, s.States = admin.OneOrMore[pawl.State](s.StateTexts)
	s.Reason, s.Reasons = admin.OneOrMore[pawl.Reason](s.ReasonTexts)
	if err := q.checkTerms(s.Payload); err != nil {
		return nil, err
	}
	for _, state := range s.StateTexts {
		if !slices.Contains(pawl.States(), pawl.State(state)) {
			return nil, invalid("state", "%q is no state of a job", clipped(state))
		}
	}
	for _, t := range []struct {
		name, text string
		to         *time.Time
	}{
		{"since", s.SinceText, &s.Since}, {"until", s.UntilText, &s.Until}, {"older", s.OlderText, &s.Before},
		{"died-since", s.DiedSince, &s.Filter.DiedSince}, {"died-until", s.DiedUntil, &s.DiedBefore},
	} {
		var err error
		if *t.to, err = parseTime(t.name, t.text, q.Now()); err != nil {
			return nil, err
		}
	}
	died := !s.Filter.DiedSince.IsZero() || !s.DiedBefore.IsZero() || s.Group != "" || s.Order == pawl.OrderDied || len(s.ReasonTexts) > 0
	if died && len(s.StateTexts) == 0 {
		s.State, s.StateTexts = pawl.Dead, []string{string(pawl.Dead)}
	}
	if s.Newest && s.Order == "" {
		s.Order = pawl.OrderCreated
		if s.State == pawl.Dead {
			s.Order = pawl.OrderDied
		}
	}
	s.all = len(s.QueueTexts)+len(s.KindTexts)+len(s.ReasonTexts)+len(s.Payload) == 0 && s.Error+s.Group+s.Members == "" &&
		s.SinceText+s.UntilText+s.OlderText+s.DiedSince+s.DiedUntil == ""
	return s, nil
}

// texts returns the values that are not empty: a form also sends its empty fields.
func texts(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
}

// parseTime reads a time, or an age that counts back from now: 90m, 2h, 7d.
func parseTime(name, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.Add(-time.Duration(n) * 24 * time.Hour), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, invalid(name, "%q is neither a time such as 2026-03-01T12:00 in UTC nor an age such as 2h or 7d", clipped(text))
}

// flags returns the filter as flags of jobctl. With states it omits --state if the command selects these
// states by default.
func (s *selection) flags(states bool) (words []string) {
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				words = append(words, flag, v)
			}
		}
	}
	add("-q", s.QueueTexts...)
	if states {
		add("-s", s.StateTexts...)
	}
	add("-k", s.KindTexts...)
	add("--group", s.Members)
	add("--error", s.ErrorText)
	add("--payload", s.Payload...)
	add("--reason", s.ReasonTexts...)
	add("--since", s.SinceText)
	add("--until", s.UntilText)
	add("--older-than", s.OlderText)
	add("--died-since", s.DiedSince)
	add("--died-until", s.DiedUntil)
	add("--sort", s.SortText)
	if s.NewestFirst {
		words = append(words, "--newest")
	}
	if s.Group != "" && s.ErrorText == "" {
		add("--error", literalPart(s.Group))
	}
	return words
}

// literalPart returns the longest part of a fingerprint that also occurs in the errors themselves.
func literalPart(fingerprint string) (longest string) {
	for _, part := range strings.FieldsFunc(fingerprint, func(r rune) bool { return strings.ContainsRune("<>…\"'`", r) }) {
		switch part = strings.TrimSpace(part); part {
		case "n", "id", "addr", "time", "duration":
		default:
			if len(part) > len(longest) {
				longest = part
			}
		}
	}
	return longest
}

// matches reports whether a job belongs to the group of the selection.
func (s *selection) matches(e *pawl.Envelope) bool {
	return s.Group == "" || dlq.Fingerprint(e.LastError()) == s.Group
}

// found is a part of the jobs that a selection selects.
type found struct {
	Jobs []pawl.Listed
	Next string
}

// find reads up to limit jobs from a cursor on. It stops early when the time is over.
func (q *request) find(s *selection, detail admin.Detail, after string, limit int, within time.Duration) (found, error) {
	out, began := found{Next: after}, time.Now()
	for {
		page, err := q.d.admin.List(q.ctx, admin.Query{Filter: s.Filter, Detail: detail, After: out.Next, Limit: min(limit-len(out.Jobs), admin.MaxLimit)})
		if err != nil {
			return out, err
		}
		for _, one := range page.Jobs {
			if one.Err != nil && s.Group == "" || one.Err == nil && s.matches(one.Job) {
				out.Jobs = append(out.Jobs, one)
			}
		}
		if out.Next = page.Next; out.Next == "" || len(out.Jobs) >= limit || time.Since(began) > within {
			return out, nil
		}
	}
}

// jobsPage is what the list of jobs shows.
type jobsPage struct {
	*selection
	found
	Queues, States, Reasons []string // suggestions
	NextLink                string
	FirstLink               string
	Query                   []pair // the filter, for the forms of changes
	Searched                bool   // the page is short, because the search takes longer
}

type pair struct{ Name, Value string }

// Has reports whether the selection names a state.
func (p *jobsPage) Has(state string) bool { return slices.Contains(p.StateTexts, state) }

// HasReason reports whether the selection names a reason.
func (p *jobsPage) HasReason(reason string) bool { return slices.Contains(p.ReasonTexts, reason) }

// reasons are the reasons of dead jobs.
var reasons = words([]pawl.Reason{
	pawl.ReasonExhausted, pawl.ReasonPermanent, pawl.ReasonPoison, pawl.ReasonDeadline,
	pawl.ReasonCancelled, pawl.ReasonSignature, pawl.ReasonPayload, pawl.ReasonCorrupt,
})

func jobs(q *request) error {
	s, err := q.selection()
	if err != nil {
		return err
	}
	p := &jobsPage{selection: s, Reasons: reasons}
	if p.found, err = q.find(s, admin.Summary, q.Form.Get("after"), pageSize, lookTime); err != nil {
		return err
	}
	stats, err := q.Stats()
	if err != nil {
		return err
	}
	for _, one := range stats.Queues {
		p.Queues = append(p.Queues, one.Name)
	}
	p.States = words(pawl.States())
	p.Searched = p.Next != "" && len(p.Jobs) < pageSize
	p.Query = q.filterPairs()
	var keep []any
	for _, one := range p.Query {
		keep = append(keep, one.Name, one.Value)
	}
	p.FirstLink = link("jobs", keep...)
	if p.Next != "" {
		p.NextLink = link("jobs", append(keep, "after", p.Next)...)
	}
	return q.show("jobs", "jobs", "Jobs", p, q.command(append([]string{"job", "list"}, s.flags(true)...)...))
}

// filterNames are the parameters of a selection.
var filterNames = []string{"queue", "state", "kind", "error", "payload", "reason", "since", "until", "older", "died-since", "died-until", "sort", "newest", "group", "members"}

// filterPairs returns the filter of a request unchanged.
func (q *request) filterPairs() (pairs []pair) {
	for _, name := range filterNames {
		for _, v := range texts(q.Form[name]) {
			pairs = append(pairs, pair{name, v})
		}
	}
	return pairs
}
