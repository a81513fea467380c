package bolt

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// SetLimits sets other limits for a queue than its program declares, for an operator. The file keeps them. They hold,
// whatever a later opener declares, until a call of SetLimits with nil. They also apply to the jobs that are already in
// the queue: if limits per key change, SetLimits reads every job of the queue that has a key, in one transaction. A
// queue may have limits before its first job.
//
// The override cannot change the order and the turns of keys: SetLimits returns an *[pawl.InvalidError] for others than
// the program declares, and for invalid limits. If the program later declares another order, the override adopts it.
func (q *Queue) SetLimits(ctx context.Context, queue string, l *pawl.Limits) error {
	if err := driver.CheckQueue(queue); err != nil {
		return err
	}
	return q.do(ctx, &override{queue: queue, limits: l})
}

// override is the operation that sets the limits of a queue, or with nil those that are declared.
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
	for _, r := range t.keyRows { // those of earlier transactions have the limits from before
		if queueOf(r.key) == n {
			t.limit(r)
		}
	}
	t.resume(n)
}
