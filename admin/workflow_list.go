package admin

import (
	"context"
	"iter"

	"github.com/gopawl/pawl/workflow"
)

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
