package bolt

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The most that one List or Effects reads.
const (
	listRows  = 1 << 10
	listBytes = 8 << 20
)

// List reads at most max jobs that match f, with state, payload, and history, in the order of
// [Queue.Jobs]. Max is 1 to [pawl.MaxListed]. After is a cursor: "" for the beginning, or the Next
// of an earlier List of the same filter. List reads about 1,000 rows at most, and stops at 8 MiB of
// payloads, histories, and headers. So it may return fewer than max jobs, even none, before the
// end. At the end Next is "".
//
// It reads in short transactions, so it delays no writer. A job that moves during the call may
// appear before or after the move, or not at all. A cursor stays valid after its job is gone.
//
// It returns [pawl.ErrInvalid] for an unknown state, a max out of range, and a cursor of another
// list. An unreadable job is in the list, with its error.
func (r *reader) List(ctx context.Context, f pawl.Filter, after string, max int) (pawl.Listing, error) {
	return r.ListParts(ctx, f, driver.AllParts, after, max)
}

// ListParts is [Queue.List] with only some parts of each job. It does not read the other parts.
// A job without [driver.PartHistory] has at most one entry of its history. Damage in a part that
// is not read goes unnoticed.
func (r *reader) ListParts(ctx context.Context, f pawl.Filter, parts driver.Parts, after string, max int) (pawl.Listing, error) {
	var l pawl.Listing
	if err := driver.CheckListed(max); err != nil {
		return l, err
	}
	p := page{filter: f, parts: parts}
	if err := p.resume(after); err != nil {
		return l, err
	}
	for rows, bytes := 0, 0; !p.end && len(l.Jobs) < max && rows < listRows && bytes < listBytes; {
		p.jobs = min(pageJobs, max-len(l.Jobs))
		if err := r.view(ctx, p.read); err != nil {
			return pawl.Listing{}, fmt.Errorf("list jobs: %w", err)
		}
		l.Jobs = append(l.Jobs, p.entries...)
		rows, bytes = rows+p.rows, bytes+p.bytes
	}
	l.Next = p.cursor()
	return l, nil
}

// resume moves a page after the cursor after.
func (p *page) resume(after string) error {
	if after == "" {
		return nil
	}
	part, key, err := parseCursor(after, driver.FilterScope(p.filter))
	if err != nil {
		return err
	}
	p.part, p.last = part, key
	return nil
}

// cursor returns the cursor for the next page, "" at the end.
func (p *page) cursor() string {
	if p.end {
		return ""
	}
	return formatCursor(p.part, p.last, driver.FilterScope(p.filter))
}
