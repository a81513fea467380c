package bolt

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Transfer replaces the dead job that has the ID of the envelope, as one transition. It removes the
// dead job with its history, and stores the envelope as [Queue.Enqueue] would. This is how a dead
// job moves to another queue of its file. Transfer does not change the envelope.
//
// It returns the errors of Enqueue; [pawl.ErrNotFound] if there is no job with that ID;
// [pawl.ErrNotEligible] if the job is not dead or does not match the condition. Transfer refuses a
// unique key.
func (q *Queue) Transfer(ctx context.Context, job *pawl.Envelope, when pawl.Condition) error {
	if err := driver.CheckTransfer(job, q.opts.MaxPayload); err != nil {
		return err
	}
	prepared, bytes, err := q.prepare([]*pawl.Envelope{job})
	if err != nil {
		return err
	}
	return q.scheduler.intake.do(ctx, &transfer{prepared, when}, bytes)
}

// transfer is an enqueue of one job that replaces the dead job with its ID.
type transfer struct {
	*enqueue
	when pawl.Condition
}

func (op *transfer) check(t *txn) error {
	j := &op.jobs[0]
	deadJob, at, err := t.find(j.own)
	if err != nil {
		return err
	}
	if at.state != pawl.Dead {
		return driver.NotEligible(j.own, "it is %s, not dead", at.state)
	}
	if err := t.meets(op.when, deadJob, at); err != nil {
		return err
	}
	if err := t.admitCost(&j.Envelope); err != nil {
		return err
	}
	j.replaces = true
	if err := t.admitWaiting(op.jobs); err != nil {
		return err
	}
	return t.admit(op.jobs)
}
