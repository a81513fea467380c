package sqlite

import (
	"context"

	"github.com/gopawl/pawl/internal/core"
)

// operation is a call to be carried out in a transaction of the scheduler.
type operation interface {
	// apply makes the change in a transaction. If it returns an error, that is the answer, and nothing
	// has changed.
	apply(t *txn) error
}

// call is an operation with its caller.
type call struct {
	operation
	core.Call
}

func newCall(ctx context.Context, op operation) *call { return &call{op, core.NewCall(ctx, op)} }

// newIntake returns an intake, with the limits of a group: calls, and bytes of payloads. Its notes are
// fetches whose context has ended.
func newIntake() *core.Intake[*call, *fetch] { return core.NewIntake[*call, *fetch](4096, 32<<20) }

// submit leaves an operation to the scheduler and waits for its answer, or until the end of the
// context withdraws it.
func (q *Queue) submit(ctx context.Context, op operation) error {
	return q.intake.Submit(newCall(ctx, op))
}
