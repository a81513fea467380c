package postgres

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Await implements [pawl.Awaiter]. Other processes notify this one of the jobs that they end: of each
// that has a retention, and of each that dies. A call also looks again every 5 s, since notifications
// may get lost. It returns [pawl.ErrNotFound] for a job without a retention that another process has
// run to its end.
func (q *Queue) Await(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	again := lookAgain
	if q.bell == nil {
		again = min(again, max(q.opts.Poll, time.Second))
	}
	return q.waiters.Await(ctx, q, id, again)
}

// lookAgain is when a call of Await looks again without a notification.
const lookAgain = 5 * time.Second

// SaveCursor implements [pawl.CursorSaver].
func (q *Queue) SaveCursor(ctx context.Context, l *pawl.Lease, cursor []byte) error {
	return driver.SaveCursor(ctx, q.Mutate, l, cursor)
}
