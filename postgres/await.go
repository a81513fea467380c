package postgres

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Await implements [pawl.Awaiter]. Other processes notify this one when they end a job that has a retention, and when a
// job becomes dead. Notifications may get lost, so a call also polls every 5 s. It returns [pawl.ErrNotFound] if the
// job has no retention and succeeded in another process.
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
