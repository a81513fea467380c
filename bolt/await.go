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

// ended reports the ends of a durable transaction to the calls that wait for them.
func (o *observer) ended(t *txn) {
	if !o.waiters.Any() {
		return
	}
	for _, e := range t.events {
		o.waiters.Report(e)
	}
	for _, h := range t.ended {
		o.waiters.Look(h.id)
	}
}

// SaveCursor implements [pawl.CursorSaver].
func (q *Queue) SaveCursor(ctx context.Context, l *pawl.Lease, cursor []byte) error {
	return driver.SaveCursor(ctx, q.Mutate, l, cursor)
}
