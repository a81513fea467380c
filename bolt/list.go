package bolt

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
)

// How much one List or Effects reads at most.
const (
	listRows  = 16 << 10
	listBytes = 8 << 20
)

// MaxListed is the most that one List or Effects returns.
const MaxListed = 10_000

// Listing is a part of a list of jobs.
type Listing struct {
	Jobs []Listed

	// Next is where the next List goes on, "" at the end. It is opaque, of letters, digits,
	// - and _, and does not begin with -, so that it is safe in a URL and in a shell.
	Next string
}

// Listed is one job of a list.
type Listed struct {
	Job *pawl.Envelope // has the ID alone when Err is not nil
	Err error          // matches pawl.ErrCorrupt: this job cannot be read
}

// List reads a part of the jobs that f chooses, with state, payload and history, in the
// order of [Queue.Jobs], from behind the place that after names: "" for the beginning, or
// the Next of an earlier List of the same filter. It returns at most max jobs, 1 to
// [MaxListed]. It looks at some 16 000 rows at most, and stops when the jobs carry 8 MiB of
// payload, history and headers, so there may be fewer jobs, even none, with more to come: the
// end is where Next is "".
//
// It reads in short transactions, so it holds back no writer. A job that moves meanwhile may
// be seen before or after the move, or not at all. A place stays one when its job is gone.
//
// A state that is none, a max out of bounds, and an after that is not from a List of f give
// [pawl.ErrInvalid]. A job that cannot be read is in the list, with its error.
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

// ListParts is [Queue.List] of jobs that have only some of their parts: the others are not
// read. A job without [History] has at most one entry of its history. Damage of a part that is
// not read goes unnoticed.
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
	l.Next = p.bookmark()
	return l, nil
}

func checkMax(max int) error {
	if max < 1 || max > MaxListed {
		return &pawl.InvalidError{Field: "max", Reason: fmt.Sprintf("%d is not between 1 and %d", max, MaxListed)}
	}
	return nil
}

// resume puts a page behind the place that after names.
func (p *page) resume(after string) error {
	if after == "" {
		return nil
	}
	part, key, err := parseBookmark(after, filterScope(p.filter))
	if err != nil {
		return err
	}
	p.part, p.last = part, key
	return nil
}

// bookmark is where the page behind this one begins, "" at the end.
func (p *page) bookmark() string {
	if p.end {
		return ""
	}
	return formatBookmark(p.part, p.last, filterScope(p.filter))
}
