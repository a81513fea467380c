package memory

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Transfer replaces the dead job that has the ID of e, as one transition. It removes the
// dead job with its history, and stores e as [Queue.Enqueue] would. This is how a dead job
// moves to another queue. It does not change the envelope.
//
// Errors: those of Enqueue; [pawl.ErrNotFound] if there is no job with that ID;
// [pawl.ErrNotEligible] if it is not dead, or does not match the condition, if there is
// one; and [pawl.ErrInvalid] if e has a unique key.
func (q *Queue) Transfer(ctx context.Context, e *pawl.Envelope, when pawl.Condition) error {
	if q.err != nil {
		return q.err
	}
	if err := driver.CheckTransfer(e, q.opts.MaxPayload); err != nil {
		return err
	}
	return q.do(ctx, func() error { return q.moves.Transfer(e, when) })
}
