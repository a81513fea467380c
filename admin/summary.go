package admin

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// SummaryQuery is one page of a summary of the dead jobs that a filter selects; the state in the
// filter is ignored.
type SummaryQuery struct {
	Filter

	// By is what the dead jobs of a group have in common: "error", the [dlq.Fingerprint] of the
	// last error; "kind", "queue" or "reason"; or "payload.PATH", a field of the payload, with a
	// path as in [Filter.Payload]. "" means "error".
	By string

	After string // where the page begins: Next of the previous page, "" for the first
}

// Group is the dead jobs of a page that have a key in common.
type Group struct {
	Key         string // "" for jobs without an error, or without that field
	Count       int64
	First, Last time.Time // when the first and the last of them became dead
	Example     pawl.ID   // the last job that became dead
}

// SummaryPage is a part of a summary. A group may have a part in several pages.
type SummaryPage struct {
	Groups  []Group
	Damaged int64  // jobs that could not be read
	Next    string // where the next page begins, "" after the last
}

// Limits of a summary.
const (
	maxPageGroups = 2000   // approximate number of groups of a page
	maxGroups     = 10_000 // groups of [Summarize]; the rest are one group
)

// OtherGroups is the key of the group of all jobs outside the 10 000 groups that [Summarize]
// keeps apart.
const OtherGroups = "…"

// Summarize groups the dead jobs that a filter selects, with the largest group first, and counts
// those that cannot be read.
func Summarize(ctx context.Context, a Admin, f Filter, by string) (groups []Group, damaged int64, err error) {
	all := make(Grouping)
	for q := (SummaryQuery{Filter: f, By: by}); ; {
		page, err := a.Summary(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		damaged += page.Damaged
		for _, g := range page.Groups {
			if all[g.Key] == nil && len(all) >= maxGroups {
				g.Key = OtherGroups
			}
			all.Add(g)
		}
		if q.After = page.Next; q.After == "" {
			return all.Sorted(), damaged, nil
		}
	}
}

// Grouping maps keys to groups.
type Grouping map[string]*Group

// Add adds a part of a group to its other parts.
func (all Grouping) Add(g Group) {
	have := all[g.Key]
	if have == nil {
		all[g.Key] = &g
		return
	}
	have.Count += g.Count
	if g.First.Before(have.First) {
		have.First = g.First
	}
	if !g.Last.Before(have.Last) {
		have.Last, have.Example = g.Last, g.Example
	}
}

// Sorted returns the groups, the largest first.
func (all Grouping) Sorted() []Group {
	groups := make([]Group, 0, len(all))
	for _, g := range all {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.Key, b.Key))
	})
	return groups
}

// keyOf returns the function that returns the key of a job, and the parts of a job that it
// needs.
func keyOf(by string) (key func(*pawl.Envelope) string, parts driver.Parts, err error) {
	switch by {
	case "", "error":
		return func(e *pawl.Envelope) string { return dlq.Fingerprint(e.LastError()) }, driver.PartLastFailure, nil
	case "kind":
		return func(e *pawl.Envelope) string { return e.Kind }, 0, nil
	case "queue":
		return func(e *pawl.Envelope) string { return e.Queue }, 0, nil
	case "reason":
		return func(e *pawl.Envelope) string { return string(e.Death.Reason) }, 0, nil
	}
	path, ok := strings.CutPrefix(by, "payload.")
	if !ok {
		return nil, 0, invalid("by", "%q is none of error, kind, queue, reason, payload.PATH", truncate(by))
	}
	t, err := parseTerm(path)
	if err != nil {
		return nil, 0, err
	}
	if t.operator != "" {
		return nil, 0, invalid("by", "%q has a comparison; name a field alone, such as payload.user.id", truncate(by))
	}
	return func(e *pawl.Envelope) string {
		if wellFormed(e.Payload) != nil {
			return ""
		}
		at := find(e.Payload, t.path)
		if at < 0 {
			return ""
		}
		return ellipsis.Truncate(keyText(e.Payload, at), maxKeyText)
	}, driver.PartPayload, nil
}

// maxKeyText limits the key of a group in bytes.
const maxKeyText = 256

// summaryPage reads one page of a summary. It looks at as many jobs as one call of List.
func summaryPage(ctx context.Context, from Store, q SummaryQuery) (page SummaryPage, err error) {
	key, parts, err := keyOf(q.By)
	if err != nil {
		return page, err
	}
	q.State, q.Order, q.Newest = pawl.Dead, "", false
	m, err := q.matcher()
	if err != nil {
		return page, err
	}
	groups := make(Grouping)
	page.Next = q.After
	for looked, bytes := 0, 0; ; {
		part, err := from.ListParts(ctx, q.Filter.Filter, parts|m.parts(IDs), page.Next, MaxLimit)
		if err != nil {
			return SummaryPage{}, err
		}
		for _, listed := range part.Jobs {
			if err := ctx.Err(); err != nil {
				return SummaryPage{}, err
			}
			e := listed.Job
			bytes += len(e.Payload)
			switch {
			case listed.Err != nil:
				page.Damaged++
			case m.simple() || m.Matches(e):
				groups.Add(Group{key(e), 1, e.Death.At, e.Death.At, e.ID})
			}
		}
		looked += len(part.Jobs)
		page.Next = part.Next
		if page.Next == "" || looked >= lookJobs || bytes >= lookBytes || len(groups) >= maxPageGroups || len(part.Jobs) == 0 {
			page.Groups = groups.Sorted()
			return page, nil
		}
	}
}
