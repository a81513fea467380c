package bolt

import (
	"context"
	"errors"

	"github.com/gopawl/pawl"
)

// Transfer puts a job in the place of the dead letter that has its ID, as one
// transition: the letter goes, with its history, and the job is stored as
// [Queue.Enqueue] would. That is how a dead letter moves to another queue of its file.
// It completes the envelope in place.
//
// Errors: those of Enqueue; [pawl.ErrNotFound] when there is no job of that ID,
// [pawl.ErrNotEligible] when it is not dead, or does not match the condition, if there is
// one. A unique key is refused.
func (q *Queue) Transfer(ctx context.Context, job *pawl.Envelope, when pawl.Condition) error {
	jobs := []*pawl.Envelope{job}
	prepared, bytes, err := q.prepare(jobs)
	if err != nil {
		return err
	}
	if job.UniqueKey != "" {
		return &pawl.InvalidError{Field: "unique key", Reason: "a job that takes the place of a dead letter has none"}
	}
	err = q.scheduler.intake.do(ctx, &transfer{prepared, when}, bytes)
	if err == nil || errors.Is(err, pawl.ErrUnknownOutcome) {
		prepared.answer(jobs)
	}
	return err
}

// transfer is an enqueue of one job that replaces the dead letter of its ID.
type transfer struct {
	*enqueue
	when pawl.Condition
}

func (op *transfer) check(t *txn) error {
	j := &op.jobs[0]
	letter, at, err := t.find(j.own)
	if err != nil {
		return err
	}
	if at.state != pawl.Dead {
		return pawl.NotEligible(j.own, "it is %s, not dead", at.state)
	}
	if err := t.meets(op.when, letter, at); err != nil {
		return err
	}
	j.replaces = true
	return nil
}
