// Package withid enqueues jobs for tests that find them again by the IDs in their envelopes.
package withid

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Enqueue enqueues jobs in q and gives the envelopes the IDs that q returns.
func Enqueue(ctx context.Context, q pawl.Enqueuer, jobs ...*pawl.Envelope) error {
	done, err := q.Enqueue(ctx, jobs...)
	give(jobs, done)
	return err
}

// EnqueueTx is [Enqueue] within a transaction of an app.
func EnqueueTx[T any](q interface {
	EnqueueTx(tx T, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error)
}, tx T, jobs ...*pawl.Envelope) error {
	done, err := q.EnqueueTx(tx, jobs...)
	give(jobs, done)
	return err
}

// EnqueueOps is [Enqueue] within a mutation.
func EnqueueOps(ops driver.Ops, jobs ...*pawl.Envelope) error {
	done, err := ops.Enqueue(jobs...)
	give(jobs, done)
	return err
}

func give(jobs []*pawl.Envelope, done []pawl.Enqueued) {
	for i, d := range done {
		jobs[i].ID = d.ID
	}
}
