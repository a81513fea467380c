package admin

import (
	"context"

	"github.com/gopawl/pawl"
)

// Limits on what one call of List or Summary reads before it returns. A page of the dashboard that
// searches makes such calls until its time is over, so they must be short.
const (
	lookJobs  = MaxLimit
	lookBytes = 8 << 20 // of payloads
)

// listPage reads one page. If the file cannot answer the whole filter, listPage reads the jobs
// that match the rest of the filter, in portions of the room left in the page, so that the
// position after the last portion is the position after the last job of the page.
func listPage(ctx context.Context, from Store, q Query) (page Page, err error) {
	m, err := q.matcher()
	if err != nil {
		return page, err
	}
	limit, err := pageSize(q.Limit)
	if err != nil {
		return page, err
	}
	page.Next = q.After
	for looked, bytes := 0, 0; ; {
		room := limit - len(page.Jobs)
		part, err := from.ListParts(ctx, q.Filter.Filter, m.parts(q.Detail), page.Next, room)
		if err != nil {
			return Page{}, err
		}
		for _, listed := range part.Jobs {
			if err := ctx.Err(); err != nil {
				return Page{}, err // matching a large payload takes time
			}
			bytes += len(listed.Job.Payload)
			if listed.Err == nil && (!m.simple() && !m.Matches(listed.Job)) {
				continue
			}
			if listed.Err == nil {
				listed.Job = cut(listed.Job, q.Detail)
			}
			page.Jobs = append(page.Jobs, listed)
		}
		looked += len(part.Jobs)
		page.Next = part.Next
		// The file's own limit per read ended a short portion.
		if page.Next == "" || len(page.Jobs) == limit || len(part.Jobs) < room || looked >= lookJobs || bytes >= lookBytes {
			return page, nil
		}
	}
}

// pageSize returns the most elements of a page with that limit.
func pageSize(limit int) (int, error) {
	switch {
	case limit < 0:
		return 0, invalid("limit", "%d is negative", limit)
	case limit == 0:
		return DefaultLimit, nil
	}
	return min(limit, MaxLimit), nil
}

// cut returns a job in the requested detail.
func cut(e *pawl.Envelope, d Detail) *pawl.Envelope {
	switch d {
	case Whole:
		return e
	case IDs:
		return &pawl.Envelope{ID: e.ID, Queue: e.Queue, Kind: e.Kind, State: e.State}
	}
	own := *e
	if d != Payloads {
		own.Payload, own.Result, own.Cursor = nil, nil, nil
	}
	if n := len(own.History); n > 0 {
		own.History = []pawl.Failure{own.History[n-1]} // a new slice, so that the other entries can be freed
	}
	return &own
}
