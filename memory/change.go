package memory

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Change carries out c on each job by itself, all in one transition. It returns an error for
// each ID, in their order: nil for a job that was changed; [pawl.ErrNotFound];
// [pawl.ErrNotEligible] for a job in a state to which the verb does not apply, or that does
// not match the condition; and [pawl.ErrConflict] for a dead job whose deadline has passed or
// whose unique key another job has. If the second error is not nil, nothing has changed, and
// the first result is nil.
func (q *Queue) Change(ctx context.Context, c pawl.Change, ids ...pawl.ID) (errs []error, err error) {
	if err := driver.CheckChange(&c, len(ids)); err != nil || len(ids) == 0 {
		return nil, err
	}
	var cancelled []*driver.Cancellation
	err = q.do(ctx, func() error {
		q.cancelled = nil
		errs = q.moves.Changes(&c, ids, false)
		cancelled = q.cancelled
		return nil
	})
	for _, signal := range cancelled {
		signal.Fire() // without the mutex, since it calls code of others
	}
	return errs, err
}

// DryRun returns what [Queue.Change] would return for each job now, and changes nothing. Like
// Change, it would retry only the first of several dead jobs with one unique key.
func (q *Queue) DryRun(ctx context.Context, c pawl.Change, ids ...pawl.ID) (errs []error, err error) {
	if err := driver.CheckChange(&c, len(ids)); err != nil || len(ids) == 0 {
		return nil, err
	}
	err = q.look(ctx, func() error {
		errs = q.moves.Changes(&c, ids, true)
		return nil
	})
	return errs, err
}
