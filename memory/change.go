package memory

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Change carries out c on each job by itself, all in one transition, and returns an error for
// each ID in their order, nil for a job that was changed: [pawl.ErrNotFound];
// [pawl.ErrNotEligible] for a job in a state that the verb is not for, or that does not match
// the condition; [pawl.ErrConflict] for a dead job whose deadline has passed or whose unique
// key another job has. The second error says that the change as a whole did not come through;
// then the first result is nil.
func (q *Queue) Change(ctx context.Context, c pawl.Change, ids ...pawl.ID) (errs []error, err error) {
	if err := driver.CheckChange(&c, len(ids)); err != nil || len(ids) == 0 {
		return nil, err
	}
	var cancelled []*driver.Cancellation
	err = q.do(ctx, func() error {
		errs = make([]error, len(ids))
		for i, id := range ids {
			j, err := q.decide(&c, id, nil)
			if errs[i] = err; err == nil {
				cancelled = append(cancelled, q.change(&c, j)...)
			}
		}
		return nil
	})
	for _, signal := range cancelled {
		signal.Fire() // without the mutex: what it calls is not ours
	}
	return errs, err
}

// DryRun returns what [Queue.Change] would return for each job now, and changes nothing. Of
// several dead jobs with one unique key only the first would be retried, as in a Change of the
// same IDs.
func (q *Queue) DryRun(ctx context.Context, c pawl.Change, ids ...pawl.ID) (errs []error, err error) {
	if err := driver.CheckChange(&c, len(ids)); err != nil || len(ids) == 0 {
		return nil, err
	}
	err = q.look(ctx, func() error {
		errs = make([]error, len(ids))
		claims := make(map[unique]pawl.ID)
		for i, id := range ids {
			j, err := q.decide(&c, id, claims)
			if errs[i] = err; err == nil && c.Verb == pawl.VerbRetry && j.UniqueKey != "" {
				claims[uniqueOf(&j.Envelope)] = id
			}
		}
		return nil
	})
	return errs, err
}

// one is Change of one job.
func (q *Queue) one(ctx context.Context, c pawl.Change, id pawl.ID) error {
	errs, err := q.Change(ctx, c, id)
	if err != nil {
		return err
	}
	return errs[0]
}

// decide reports why a change does not apply to a job. Claims are the unique keys that jobs of
// a dry run would take.
func (q *Queue) decide(c *pawl.Change, id pawl.ID, claims map[unique]pawl.ID) (*job, error) {
	j, err := q.get(id)
	if err != nil {
		return nil, err
	}
	if err := driver.Refuses(c, id, j.State); err != nil {
		return nil, err
	}
	if !j.meets(c.If) {
		return nil, driver.NotEligible(id, "it does not match any more")
	}
	if c.Verb != pawl.VerbRetry {
		return j, nil
	}
	if q.isLate(j) {
		return nil, fmt.Errorf("job %s: %w: its deadline %v has passed, it would die again at once", id, pawl.ErrConflict, j.Deadline)
	}
	h, taken := q.holderOf(&j.Envelope)
	if claimer, claimed := claims[uniqueOf(&j.Envelope)]; claimed {
		h, taken = holder{claimer, pawl.Ready}, true
	}
	if taken && h.id != id && driver.BlockedBy(&j.Envelope, h.state) {
		return nil, fmt.Errorf("job %s: %w: job %s, which is %s, has its unique key", id, pawl.ErrConflict, h.id, h.state)
	}
	return j, nil
}

// change carries out a change that applies to a job. It returns the signals of leases whose
// jobs were cancelled.
func (q *Queue) change(c *pawl.Change, j *job) (cancelled []*driver.Cancellation) {
	switch c.Verb {
	case pawl.VerbRetry:
		q.revive(j, c.KeepAttempts)
	case pawl.VerbRunNow:
		q.runNow(j)
	case pawl.VerbDelete:
		if j.State == pawl.Dead {
			q.member(&j.Envelope, driver.MemberDead, driver.MemberRemoved)
		}
		q.take(j)
		q.forget(j)
		q.emit(j, pawl.Event{Type: pawl.EventDeleted})
	case pawl.VerbCancel:
		switch {
		case j.State != pawl.Leased:
			q.take(j)
			q.makeDead(j, pawl.ReasonCancelled, pawl.Event{Cause: "it was cancelled"})
		case !j.Cancelled:
			j.Cancelled = true
			cancelled = append(cancelled, j.signal)
			q.emit(j, pawl.Event{Type: pawl.EventCancelled})
		}
	}
	return cancelled
}
