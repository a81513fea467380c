package admin

import (
	"context"
	"iter"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Jobs iterates over all jobs that a query selects, page by page; Limit is the size of the
// pages. An unreadable job comes with an error that matches pawl.ErrCorrupt and an envelope that
// has only its ID, and the iteration continues. An error with a nil envelope ends the iteration.
// Jobs reads the next page while the caller handles the current one.
func Jobs(ctx context.Context, a Admin, q Query) iter.Seq2[*pawl.Envelope, error] {
	return func(yield func(*pawl.Envelope, error) bool) {
		for page, err := range pagesOf(ctx, a, q) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, listed := range page.Jobs {
				if !yield(listed.Job, listed.Err) {
					return
				}
			}
		}
	}
}

// pagesOf iterates over the pages of a list. An error ends the iteration. It reads the next page
// while the caller handles the current one, and stops reading when the iteration ends.
func pagesOf(ctx context.Context, a Admin, q Query) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		if q.Limit == 0 {
			q.Limit = MaxLimit
		}
		ctx, cancel := context.WithCancel(ctx)
		type result struct {
			page Page
			err  error
		}
		read := func(after string) <-chan result {
			coming, one := make(chan result, 1), q
			one.After = after
			go func() {
				page, err := a.List(ctx, one)
				coming <- result{page, err}
			}()
			return coming
		}
		coming := read(q.After)
		defer func() {
			cancel()
			if coming != nil {
				<-coming
			}
		}()
		for coming != nil {
			r := <-coming
			if coming = nil; r.err != nil {
				yield(Page{}, r.err)
				return
			}
			if r.page.Next != "" {
				coming = read(r.page.Next)
			}
			if !yield(r.page, nil) {
				return
			}
		}
	}
}

// WorkflowRuns iterates over all runs that a query selects, page by page; Limit is the size of
// the pages. An error ends the iteration.
func WorkflowRuns(ctx context.Context, w Workflows, q WorkflowQuery) iter.Seq2[workflow.Info, error] {
	return func(yield func(workflow.Info, error) bool) {
		if q.Limit == 0 {
			q.Limit = MaxLimit
		}
		for {
			page, err := w.List(ctx, q)
			if err != nil {
				yield(workflow.Info{}, err)
				return
			}
			for _, run := range page.Runs {
				if !yield(run, nil) {
					return
				}
			}
			if q.After = page.Next; q.After == "" {
				return
			}
		}
	}
}
