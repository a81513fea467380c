package bolt

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// SetLimits lets an operator override the limits that the program declares for a queue. The file keeps the override.
// Whatever a later opener declares, it holds until a call of SetLimits with nil. It also applies to the jobs that are
// already in the queue: if limits per key change, SetLimits reads every job of the queue that has a key, in one
// transaction. A queue may have limits before its first job.
//
// The override cannot change InOrder and Fair: SetLimits returns an *[pawl.InvalidError] if they differ from what the
// program declares, and for invalid limits. If the program later declares another order, the override adopts it.
func (q *Queue) SetLimits(ctx context.Context, queue string, l *pawl.Limits) error {
	if err := driver.CheckQueue(queue); err != nil {
		return err
	}
	return q.do(ctx, &override{queue: queue, limits: l})
}

// override is the operation that sets the limits of a queue. Nil limits restore the declared ones.
type override struct {
	queue  string
	limits *pawl.Limits
}

func (op *override) check(t *txn) error {
	if op.limits == nil {
		return nil
	}
	declared := pawl.Limits{}
	n, known, err := t.number(op.queue)
	if err != nil {
		return err
	}
	if known {
		row, err := t.rowOf(n)
		if err != nil {
			return err
		}
		if declared = row.limits; row.declared != nil {
			declared = *row.declared
		}
	}
	return driver.CheckOverride(declared, *op.limits)
}

func (op *override) apply(t *txn) {
	if _, known, err := t.number(op.queue); op.limits == nil && !known {
		t.fail(err)
		return
	}
	n := t.numberOf(op.queue)
	row := t.row(n)
	var limits pawl.Limits
	switch {
	case op.limits != nil:
		if row.declared == nil {
			declared := row.limits
			row.declared = &declared
		}
		limits = *op.limits
	case row.declared != nil:
		limits, row.declared = *row.declared, nil
	default:
		return
	}
	row.touched, t.changed = true, true
	t.setLimits(n, limits)
	for _, r := range t.keyRows { // rows read by earlier transactions have the old limits
		if queueOf(r.key) == n {
			t.limit(r)
		}
	}
	t.resume(n)
}
