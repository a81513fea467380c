package bolt

import (
	"fmt"

	"github.com/gopawl/pawl"
)

// What operators do to jobs and queues.

// cancel ends a job that waits, and asks one that is leased to end.
type cancel struct {
	id  pawl.ID
	job stored
	at  place
}

func (op *cancel) check(t *txn) (err error) {
	if op.job, op.at, err = t.find(op.id); err != nil {
		return err
	}
	if op.at.state == pawl.Dead || op.at.state == pawl.Completed {
		return fmt.Errorf("job %s: %w: it is %s already", op.id, pawl.ErrConflict, op.at.state)
	}
	return nil
}

func (op *cancel) apply(t *txn) {
	switch {
	case op.at.state != pawl.Leased:
		t.unplace(op.job, op.at)
		t.bury(op.job, pawl.ReasonCancelled, run{cause: "it was cancelled"})
	case !op.job.Cancelled:
		op.job.Cancelled = true
		t.rewrite(op.job)
		if row, ok, err := t.lease(op.id[:]); err == nil && ok {
			t.cancelled = append(t.cancelled, holding{op.id, row.token})
		}
		t.tell(pawl.Event{Type: pawl.EventCancelled, Job: op.job.Envelope})
	}
}

// find reads a job and looks where it is.
func (t *txn) find(id pawl.ID) (j stored, at place, err error) {
	if j, err = t.record(id); err == nil {
		at, err = t.where(j.Envelope)
	}
	return j, at, err
}

// revive takes a dead letter back to ready.
type revive struct {
	id           pawl.ID
	keepAttempts bool
	job          stored
	at           place
}

func (op *revive) check(t *txn) (err error) {
	if op.job, op.at, err = t.find(op.id); err != nil {
		return err
	}
	if op.at.state != pawl.Dead {
		return fmt.Errorf("job %s: %w: it is %s, not dead", op.id, pawl.ErrConflict, op.at.state)
	}
	if overdue(op.job.Envelope, t.now) {
		return fmt.Errorf("job %s: %w: its deadline %v has passed, it would die again at once", op.id, pawl.ErrConflict, op.job.Deadline)
	}
	if op.job.UniqueKey == "" {
		return nil
	}
	other, at, taken, err := t.uniqueHolder(op.job.Envelope)
	if taken && other.ID != op.id {
		return fmt.Errorf("job %s: %w: job %s, which is %s, has its unique key", op.id, pawl.ErrConflict, other.ID, at.state)
	}
	return err
}

func (op *revive) apply(t *txn) { t.revive(op.job, op.at, op.keepAttempts) }

// hasten makes a job ready that is delayed or parked.
type hasten struct {
	id  pawl.ID
	job stored
	at  place
}

func (op *hasten) check(t *txn) (err error) {
	if op.job, op.at, err = t.find(op.id); err != nil {
		return err
	}
	if op.at.state != pawl.Delayed && op.at.state != pawl.Parked {
		return fmt.Errorf("job %s: %w: it is %s, neither delayed nor parked", op.id, pawl.ErrConflict, op.at.state)
	}
	return nil
}

func (op *hasten) apply(t *txn) { t.hasten(op.job, op.at) }

// remove deletes a dead letter or a completed record.
type remove struct {
	id  pawl.ID
	job stored
	at  place
}

func (op *remove) check(t *txn) (err error) {
	if op.job, op.at, err = t.find(op.id); err != nil {
		return err
	}
	if op.at.state != pawl.Dead && op.at.state != pawl.Completed {
		return fmt.Errorf("job %s: %w: it is %s; cancel it first", op.id, pawl.ErrConflict, op.at.state)
	}
	return nil
}

func (op *remove) apply(t *txn) {
	t.unplace(op.job, op.at)
	t.remove(op.id, op.job.flags())
	t.tell(pawl.Event{Type: pawl.EventDeleted, Job: op.job.Envelope})
}

// pause stops or starts the fetching from one queue.
type pause struct {
	queue  string
	paused bool
}

func (op *pause) check(*txn) error { return nil }

func (op *pause) apply(t *txn) {
	if _, known, err := t.number(op.queue); !known && !op.paused {
		t.fail(err)
		return
	}
	n := t.numberOf(op.queue)
	if row := t.row(n); row.paused != op.paused {
		row.paused, row.fresh, t.changed = op.paused, true, true
	}
}
