package memory

import (
	"context"

	"github.com/gopawl/pawl"
)

// Await implements [pawl.Awaiter].
func (q *Queue) Await(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	return q.waiters.Await(ctx, q, id, 0)
}
