package memory

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Transfer puts a job in the place of the dead letter that has its ID, as one
// transition: the letter goes, with its history, and the job is stored as
// [Queue.Enqueue] would. That is how a dead letter moves to another queue. It does not
// change the envelope.
//
// Errors: those of Enqueue; [pawl.ErrNotFound] when there is no job of that ID,
// [pawl.ErrNotEligible] when it is not dead, or does not match the condition, if there is
// one. A unique key is refused.
func (q *Queue) Transfer(ctx context.Context, e *pawl.Envelope, when pawl.Condition) error {
	if q.err != nil {
		return q.err
	}
	if _, err := driver.CheckBatch([]*pawl.Envelope{e}, q.opts.MaxPayload); err != nil {
		return err
	}
	if e.UniqueKey != "" {
		return &pawl.InvalidError{Field: "unique key", Reason: "a job that takes the place of a dead letter has none"}
	}
	return q.do(ctx, func() error { return q.moves.Transfer(e, when) })
}
