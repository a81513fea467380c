package postgres

import (
	"context"
	"time"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// operation is a call to be carried out in a transaction of the scheduler.
type operation interface {
	// needs names what apply reads. It runs before each attempt.
	needs(n *needs)

	// apply makes the change in a transaction. If it returns an error, that is the answer, and
	// nothing has changed.
	apply(t *txn) error
}

// call is an operation with its caller.
type call struct {
	operation
	core.Call
	until time.Time // when the call stops waiting for the server
	names []string  // what it may wait for, once it is deferred
	tries int       // how often it waited for the lock of another session
}

// The limits of a group.
const (
	groupCalls = 4096
	groupBytes = 32 << 20 // bytes of payloads, unless a single call has more
)

// newIntake returns an intake. Its notes are fetches whose context has ended.
func newIntake() *core.Intake[*call, *fetch] {
	return core.NewIntake[*call, *fetch](groupCalls, groupBytes)
}

// submit leaves an operation to the scheduler and waits for its answer, or until the end of
// the context withdraws it.
func (q *Queue) submit(ctx context.Context, op operation) error {
	if ctx.Err() != nil {
		return driver.NotAccepted(ctx)
	}
	return q.intake.Submit(&call{operation: op, Call: core.NewCall(ctx, op), until: time.Now().Add(q.opts.Timeout)})
}
