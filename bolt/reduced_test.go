package bolt_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/queuetest"
)

// reduced is a queue that lacks abilities, as one over a message broker does.
type reduced struct {
	*bolt.Queue
	has pawl.Ability
}

func (q *reduced) Abilities() pawl.Ability { return q.has }

func (q *reduced) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if err := driver.SupportsJobs(q.has, jobs...); err != nil {
		return nil, err
	}
	return q.Queue.Enqueue(ctx, jobs...)
}

func (q *reduced) Transfer(ctx context.Context, job *pawl.Envelope, when pawl.Condition) error {
	if err := driver.SupportsJobs(q.has, job); err != nil {
		return err
	}
	return q.Queue.Transfer(ctx, job, when)
}

func (q *reduced) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error {
	if err := driver.SupportsRestore(q.has, jobs, effects); err != nil {
		return err
	}
	return q.Queue.Restore(ctx, jobs, effects)
}

func (q *reduced) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	if err := driver.SupportsRequest(q.has, r); err != nil {
		return nil, err
	}
	return q.Queue.Fetch(ctx, r)
}

func (q *reduced) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if err := driver.SupportsSettle(q.has, settlements); err != nil {
		return err
	}
	return q.Queue.Settle(ctx, settlements...)
}

func (q *reduced) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	return q.Queue.Mutate(ctx, reducedMutation{m, q.has}, size)
}

type reducedMutation struct {
	driver.Mutation
	has pawl.Ability
}

func (m reducedMutation) Check(ops driver.Ops) error {
	return m.Mutation.Check(reducedOps{ops, m.has})
}

type reducedOps struct {
	driver.Ops
	has pawl.Ability
}

func (o reducedOps) Enqueue(jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if err := driver.SupportsJobs(o.has, jobs...); err != nil {
		return nil, err
	}
	return o.Ops.Enqueue(jobs...)
}

// Rule: the rest of the contract holds for a queue that lacks abilities and refuses what needs
// them.
func TestConformanceOfReduced(t *testing.T) {
	race.SkipLone(t)
	t.Setenv("TMPDIR", bolt.MemoryFolder(t)) // for the suite's folders: it proves nothing about the disk
	open := func(t testing.TB, dir string, s queuetest.Settings) pawl.Queue {
		q, err := bolt.Open(filepath.Join(dir, "jobs.db"), &bolt.Options{
			Lease: s.Lease, MaxCrashes: max(s.MaxCrashes, bolt.NoMaxCrashes), Now: s.Now,
			OnEvent: s.OnEvent, Collector: s.Collector, Logger: hclog.NewNullLogger(),
		})
		require.NoError(t, err)
		return &reduced{Queue: q}
	}
	queuetest.Run(t, open, &queuetest.Config{
		Persists: true,
		Alone:    true,
		Counts: func(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error) {
			return counts(ctx, q.(*reduced).Queue)
		},
		Events: true, Walks: 2, CounterSteps: 100,
	})
}
