package core

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The limits of lists.
const (
	ListPage  = 200      // jobs that an iteration reads at a time
	ListBytes = 8 << 20  // bytes of payloads, histories and headers that one ListParts reads
	ListRows  = 16 << 10 // rows that one ListParts reads
)

// Page is a step of a list. The pages of an engine embed it.
type Page struct {
	Jobs  []pawl.Listed
	Rows  int // rows that were read
	Bytes int // bytes of the parts of jobs that vary in size
	End   bool
}

type step interface{ page() *Page }

// Pager reads the pages of a list, one after another.
type Pager interface {
	step
	// Read reads at most room jobs.
	Read(ctx context.Context, room int) error
	// Place returns where the list continues, for a cursor. Resume moves to such a place, and
	// reports whether the place is valid.
	Place() []byte
	Resume(place []byte) bool
}

func (p *Page) page() *Page { return p }

// Jobs iterates over the jobs of a list, each time from the beginning.
func Jobs(ctx context.Context, f pawl.Filter, begin func() Pager) iter.Seq2[*pawl.Envelope, error] {
	return func(yield func(*pawl.Envelope, error) bool) {
		pages, err := begin(), driver.CheckFilter(f)
		for p := pages.page(); !p.End && err == nil; {
			if err = pages.Read(ctx, ListPage); err != nil {
				break
			}
			for _, listed := range p.Jobs {
				if err = ctx.Err(); err != nil {
					break
				}
				if !yield(listed.Job, listed.Err) {
					return
				}
			}
		}
		if err != nil {
			yield(nil, fmt.Errorf("list jobs: %w", err))
		}
	}
}

// List reads at most max jobs after a cursor.
func List(ctx context.Context, f pawl.Filter, after string, max int, pages Pager) (l pawl.Listing, err error) {
	if err := errors.Join(driver.CheckListed(max), driver.CheckFilter(f)); err != nil {
		return l, err
	}
	if after != "" {
		place, err := driver.ParseCursor(after, driver.FilterScope(f))
		if err != nil {
			return l, err
		}
		if !pages.Resume(place) {
			return l, driver.BadCursor()
		}
	}
	p := pages.page()
	for rows, bytes := 0, 0; !p.End && len(l.Jobs) < max && rows < ListRows && bytes < ListBytes; {
		if err = pages.Read(ctx, max-len(l.Jobs)); err != nil {
			return pawl.Listing{}, fmt.Errorf("list jobs: %w", err)
		}
		l.Jobs = append(l.Jobs, p.Jobs...)
		rows, bytes = rows+p.Rows, bytes+p.Bytes
	}
	if !p.End {
		l.Next = driver.FormatCursor(pages.Place(), driver.FilterScope(f))
	}
	return l, nil
}
