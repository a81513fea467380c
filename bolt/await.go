package bolt

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Await implements [pawl.Awaiter].
func (q *Queue) Await(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	return q.scheduler.observer.waiters.Await(ctx, q, id, 0)
}

// SaveCursor implements [pawl.CursorSaver].
func (q *Queue) SaveCursor(ctx context.Context, l *pawl.Lease, cursor []byte) error {
	return driver.SaveCursor(ctx, q.Mutate, l, cursor)
}
