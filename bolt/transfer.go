package bolt

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
)

// Transfer puts a job in the place of the dead letter that has its ID, as one
// transition: the letter goes, with its history, and the job is stored as
// [Queue.Enqueue] would. That is how a dead letter moves to another queue of its file.
// It completes the envelope in place.
//
// Errors: those of Enqueue; [pawl.ErrNotFound] when there is no job of that ID,
// [pawl.ErrConflict] when it is not dead. A unique key is refused.
func (q *Queue) Transfer(ctx context.Context, job *pawl.Envelope) error {
	jobs := []*pawl.Envelope{job}
	prepared, bytes, err := q.prepare(jobs)
	if err != nil {
		return err
	}
	if job.UniqueKey != "" {
		return &pawl.InvalidError{Field: "unique key", Reason: "a job that takes the place of a dead letter has none"}
	}
	err = q.scheduler.intake.do(ctx, &transfer{prepared}, bytes)
	if err == nil || errors.Is(err, pawl.ErrUnknownOutcome) {
		prepared.answer(jobs)
	}
	return err
}

// transfer is an enqueue of one job that replaces the dead letter of its ID.
type transfer struct{ *enqueue }

func (op *transfer) check(t *txn) error {
	j := &op.jobs[0]
	_, at, err := t.find(j.own)
	if err != nil {
		return err
	}
	if at.state != pawl.Dead {
		return fmt.Errorf("job %s: %w: it is %s, not dead", j.own, pawl.ErrConflict, at.state)
	}
	j.replaces = true
	return nil
}
