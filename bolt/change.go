package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Change carries out c on each job independently, all in one transaction. It returns an error
// for each ID in order, nil for a changed job: [pawl.ErrNotFound]; [pawl.ErrNotEligible] for a
// job in the wrong state for the verb, or that does not match the condition; [pawl.ErrConflict]
// for a dead job whose deadline has passed or whose unique key another job has;
// [pawl.ErrCorrupt] for an unreadable job. If the second result is an error, the first is nil,
// and no change is known to have happened.
//
// A damaged row splits the change into several transactions. If one of them fails after another
// was committed, its jobs get that error in the first result.
//
// Change takes up to [pawl.MaxBatchJobs] IDs. For the verbs, see [Queue.Retry], [Queue.Cancel],
// [Queue.Delete] and [Queue.RunNow].
func (q *Queue) Change(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error) {
	if err := driver.CheckChange(&c, len(ids)); err != nil || len(ids) == 0 {
		return nil, err
	}
	errs, err := q.change(ctx, &c, ids)
	if err != nil {
		return nil, err
	}
	if c.Verb == pawl.VerbDelete && c.If == nil { // a damaged job matches no condition
		for i, id := range ids {
			errs[i] = q.deleteUnreadable(ctx, id, errs[i])
		}
	}
	return errs, nil
}

// change is Change without the search for damaged dead jobs. If a damaged row refuses the
// transaction, it splits the jobs, so that only the jobs that touch the row fail.
func (q *Queue) change(ctx context.Context, c *pawl.Change, ids []pawl.ID) ([]error, error) {
	op := &change{Change: c, ids: ids}
	err := q.do(ctx, op)
	switch {
	case err == nil:
		return op.errs, nil
	case !errors.Is(err, pawl.ErrCorrupt) || errors.Is(err, pawl.ErrPoisoned) || errors.Is(err, pawl.ErrUnknownOutcome):
		return nil, err
	case len(ids) == 1:
		return []error{err}, nil
	}
	first, err := q.change(ctx, c, ids[:len(ids)/2])
	if err != nil {
		return nil, err
	}
	rest, err := q.change(ctx, c, ids[len(ids)/2:])
	if err != nil { // the first half is committed, and the caller must learn that
		rest = slices.Repeat([]error{err}, len(ids)-len(first))
	}
	return append(first, rest...), nil
}

// DryRun returns what [Queue.Change] would return for each job now, without changing anything.
// It runs the same checks. If several dead jobs share a unique key, only the first would be
// retried, as in a Change of the same IDs.
func (r *reader) DryRun(ctx context.Context, c pawl.Change, ids ...pawl.ID) (errs []error, err error) {
	if err := driver.CheckChange(&c, len(ids)); err != nil || len(ids) == 0 {
		return nil, err
	}
	errs = make([]error, len(ids))
	err = r.read(ctx, func(tx *bbolt.Tx) error {
		t, err := begin(tx, r.now(), settings{})
		if err != nil {
			return err
		}
		t.claims = make(map[string]pawl.ID)
		for i, id := range ids {
			var j stored
			if j, _, errs[i] = t.decide(&c, id); errs[i] == nil && c.Verb == pawl.VerbRetry {
				t.claim(j)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if c.Verb == pawl.VerbDelete && c.If == nil {
		for i, id := range ids {
			if deadKey, _, err := r.unreadable(ctx, id, errs[i]); err != nil {
				return nil, err
			} else if deadKey != nil {
				errs[i] = nil
			}
		}
	}
	return errs, nil
}

// change is the operation that changes several jobs in one transaction.
type change struct {
	*pawl.Change
	ids  []pawl.ID
	errs []error // one per job, in the order of ids
}

func (op *change) check(*txn) error { return nil }

func (op *change) apply(t *txn) {
	op.errs = make([]error, len(op.ids))
	for i, id := range op.ids {
		one := changeOne{Change: op.Change, id: id}
		if op.errs[i] = one.check(t); op.errs[i] == nil {
			one.apply(t)
		}
	}
}

// changeOne is the operation that changes one job.
type changeOne struct {
	*pawl.Change
	id  pawl.ID
	job stored
	at  place
}

func (op *changeOne) check(t *txn) (err error) {
	op.job, op.at, err = t.decide(op.Change, op.id)
	return err
}

func (op *changeOne) apply(t *txn) {
	switch op.Verb {
	case pawl.VerbRetry:
		t.revive(op.job, op.at, op.KeepAttempts)
	case pawl.VerbCancel:
		t.cancel(op.job, op.at)
	case pawl.VerbDelete:
		t.unplace(op.job, op.at)
		t.leaveKey(op.job, false)
		t.remove(op.id, op.job.flags())
		if op.at.state == pawl.Dead {
			t.member(op.job.Envelope, driver.MemberDead, driver.MemberRemoved)
		}
		t.emit(pawl.Event{Type: pawl.EventDeleted, Job: op.job.Envelope})
	case pawl.VerbRunNow:
		t.runNow(op.job, op.at)
	case pawl.VerbReleaseKey:
		t.unplace(op.job, op.at)
		op.job.HoldsKey = t.leaveKey(op.job, false)
		t.rewrite(&op.job)
		t.placeDead(op.job)
	}
}

// decide returns the reason why a change does not apply to a job, or nil. It writes nothing.
func (t *txn) decide(c *pawl.Change, id pawl.ID) (j stored, at place, err error) {
	if j, at, err = t.find(id); err != nil {
		return j, at, err
	}
	if err = driver.Refuses(c, id, at.state, j.HoldsKey); err == nil {
		err = t.meets(c.If, j, at)
	}
	if err != nil || c.Verb != pawl.VerbRetry {
		return j, at, err
	}
	if overdue(j.Envelope, t.now) {
		return j, at, fmt.Errorf("job %s: %w: its deadline %v has passed, it would die again at once", id, pawl.ErrConflict, j.Deadline)
	}
	if j.UniqueKey != "" {
		other, held, taken, err := t.uniqueHolder(j.Envelope)
		if err != nil {
			return j, at, err
		}
		if taken && other.ID != id {
			return j, at, fmt.Errorf("job %s: %w: job %s, which is %s, has its unique key", id, pawl.ErrConflict, other.ID, held.state)
		}
	}
	return j, at, nil
}

// meets returns a [pawl.ErrNotEligible] if a job does not match a condition.
func (t *txn) meets(c pawl.Condition, j stored, at place) error {
	if c == nil {
		return nil
	}
	body, err := answerOf(j.ID, func() bool { return driver.ReadsBody(c) })
	if err != nil {
		return err
	}
	parts := driver.Parts(0)
	if body {
		parts = driver.AllParts
	}
	own := *j.Envelope // complete changes the envelope
	j.Envelope = &own
	job, err := t.complete(j, at, parts)
	if err != nil {
		return err
	}
	matches, err := answerOf(j.ID, func() bool { return c.Matches(job) })
	if err == nil && !matches {
		err = driver.NotEligible(j.ID, "it does not match any more")
	}
	return err
}

// answerOf returns the answer of a condition. A panic of the condition fails the change, not
// the transaction that others share.
func answerOf(id pawl.ID, condition func() bool) (answer bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("job %s: the condition of the change panicked: %v", id, p)
		}
	}()
	return condition(), nil
}

// claim records in a dry run that a job would take its unique key.
func (t *txn) claim(j stored) {
	if j.UniqueKey != "" {
		t.claims[string(uniqueKey(nil, t.numberOf(j.Queue), j.Envelope))] = j.ID
	}
}

// find reads a job and finds its place.
func (t *txn) find(id pawl.ID) (j stored, at place, err error) {
	if j, err = t.record(id); err == nil {
		at, err = t.where(j.Envelope)
	}
	return j, at, err
}
