package admin

import (
	"context"
	"iter"

	"github.com/gopawl/pawl"
)

// Jobs iterates over all jobs that a query chooses, page by page; Limit is the size of
// the pages. A job that cannot be read comes with an error that matches pawl.ErrCorrupt and
// an envelope that has its ID alone, and the iteration goes on. An error that comes with nil
// is the end.
func Jobs(ctx context.Context, a Admin, q Query) iter.Seq2[*pawl.Envelope, error] {
	return func(yield func(*pawl.Envelope, error) bool) {
		if q.Limit == 0 {
			q.Limit = MaxLimit
		}
		for {
			page, err := a.List(ctx, q)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, listed := range page.Jobs {
				if !yield(listed.Job, listed.Err) {
					return
				}
			}
			if q.After = page.Next; q.After == "" {
				return
			}
		}
	}
}
