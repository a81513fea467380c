package memory_test

import (
	"context"
	"testing"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/queuetest"
)

// reduced is a queue that lacks abilities, as one over a message broker does.
type reduced struct {
	*memory.Queue
	has pawl.Ability
}

func (q *reduced) Abilities() pawl.Ability { return q.has }

func (q *reduced) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) error {
	if err := driver.SupportsJobs(q.has, jobs...); err != nil {
		return err
	}
	return q.Queue.Enqueue(ctx, jobs...)
}

func (q *reduced) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	if err := driver.SupportsRequest(q.has, r); err != nil {
		return nil, err
	}
	return q.Queue.Fetch(ctx, r)
}

// Rule: the rest of the contract holds for a queue that lacks abilities and refuses what needs
// them.
func TestConformanceOfReduced(t *testing.T) {
	open := func(_ testing.TB, _ string, s queuetest.Settings) pawl.Queue { return &reduced{Queue: newQueue(s)} }
	queuetest.Run(t, open, &queuetest.Config{
		Counts: func(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error) {
			return counts(ctx, q.(*reduced).Queue)
		},
		Events: true, CounterSteps: 100,
	})
}
