package memory

import (
	"bytes"
	"context"

	"github.com/gopawl/pawl"
)

// Edit replaces the payload of a job that waits or is dead, in one transition. A dead job becomes ready,
// as by [Queue.Retry]. The job keeps its ID and its history, and a header names the old payload; see
// driver.EditsOf.
//
// Errors: [pawl.ErrNotFound]; [pawl.ErrNotEligible] for a job in another state, for a signed job, and for
// a job that does not match the condition, if there is one; [pawl.ErrConflict] as Retry does;
// [pawl.ErrPayloadTooLarge]; and a [*pawl.InvalidError] if the headers have no room for that header.
func (q *Queue) Edit(ctx context.Context, id pawl.ID, payload []byte, when pawl.Condition) error {
	return q.do(ctx, func() error { return q.moves.Edit(id, bytes.Clone(payload), when, q.opts.MaxPayload) })
}
