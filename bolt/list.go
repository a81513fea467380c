package bolt

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
)

// The most that one List or Effects reads.
const (
	listRows  = 16 << 10
	listBytes = 8 << 20
)

// MaxListed is the most that one List or Effects returns.
const MaxListed = 10_000

// Listing is a page of a list of jobs.
type Listing struct {
	Jobs []Listed

	// Next is the cursor for the next List, "" at the end. It is opaque and safe in a URL and
	// in a shell: it consists of letters, digits, - and _, and does not begin with -.
	Next string
}

// Listed is one job of a list.
type Listed struct {
	Job *pawl.Envelope // has only the ID if Err is not nil
	Err error          // matches pawl.ErrCorrupt: the job is unreadable
}

// List reads some of the jobs that match f, with state, payload and history, in the order of
// [Queue.Jobs], after the cursor after: "" for the beginning, or the Next of an earlier List of
// the same filter. It returns at most max jobs, 1 to [MaxListed]. It reads about 16,000 rows at
// most, and stops when the jobs have 8 MiB of payload, history and headers, so it may return
// fewer jobs, even none, before the end. The end is where Next is "".
//
// It reads in short transactions, so it delays no writer. A job that moves meanwhile may appear
// before or after the move, or not at all. A cursor stays valid when its job is gone.
//
// An unknown state, a max out of range, or an after that did not come from a List of f returns
// [pawl.ErrInvalid]. An unreadable job is in the list, with its error.
func (r *reader) List(ctx context.Context, f pawl.Filter, after string, max int) (Listing, error) {
	return r.ListParts(ctx, f, Whole, after, max)
}

// Parts are what a list reads of each job besides its record.
type Parts uint8

const (
	Payload     Parts = 1 << iota
	LastFailure       // the newest entry of the history
	History           // the whole history

	Whole = Payload | History
)

// ListParts is [Queue.List] with only some parts of each job. It does not read the other parts.
// A job without [History] has at most one entry of its history. Damage in a part that is not
// read goes unnoticed.
func (r *reader) ListParts(ctx context.Context, f pawl.Filter, parts Parts, after string, max int) (Listing, error) {
	var l Listing
	if err := checkMax(max); err != nil {
		return l, err
	}
	p := page{filter: f, parts: parts}
	if err := p.resume(after); err != nil {
		return l, err
	}
	for rows, bytes := 0, 0; !p.end && len(l.Jobs) < max && rows < listRows && bytes < listBytes; {
		p.jobs = min(pageJobs, max-len(l.Jobs))
		if err := r.view(ctx, p.read); err != nil {
			return Listing{}, fmt.Errorf("list jobs: %w", err)
		}
		l.Jobs = append(l.Jobs, p.entries...)
		rows, bytes = rows+p.rows, bytes+p.bytes
	}
	l.Next = p.cursor()
	return l, nil
}

func checkMax(max int) error {
	if max < 1 || max > MaxListed {
		return &pawl.InvalidError{Field: "max", Reason: fmt.Sprintf("%d is not between 1 and %d", max, MaxListed)}
	}
	return nil
}

// resume moves a page after the cursor after.
func (p *page) resume(after string) error {
	if after == "" {
		return nil
	}
	part, key, err := parseCursor(after, filterScope(p.filter))
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
	return formatCursor(p.part, p.last, filterScope(p.filter))
}
