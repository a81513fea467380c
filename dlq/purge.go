package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// Delete removes dead jobs permanently and returns how many it removed. It stops at the first error:
// pawl.ErrConflict for a job that is not dead, pawl.ErrNotFound for a missing one, and
// pawl.ErrCorrupt for a damaged one that the store cannot remove.
func Delete(ctx context.Context, s Store, ids ...pawl.ID) (int, error) {
	for n, id := range ids {
		err := removeDead(ctx, s, id, pawl.Filter{State: pawl.Dead})
		if errors.Is(err, pawl.ErrCorrupt) { // a condition cannot be checked
			err = removeDead(ctx, s, id, nil)
		}
		if err != nil {
			return n, fmt.Errorf("delete dead job: %w", err)
		}
	}
	return len(ids), nil
}

// removeDead deletes a job that meets a condition.
func removeDead(ctx context.Context, s Store, id pawl.ID, when pawl.Condition) error {
	errs, err := s.Change(ctx, pawl.Change{Verb: pawl.VerbDelete, If: when}, id)
	if err != nil {
		return err
	}
	return errs[0]
}

// Purge removes permanently the dead jobs that match f and died before a time, and returns how many
// it removed. Pass the current time to remove all of them; the zero time is an error, since it is
// probably a mistake. If f.DiedBefore is set too, the earlier time counts.
//
// Each job is checked again in the transaction that removes it. Purge skips jobs that others retried
// or removed since they were listed, even if they died again, and damaged jobs, whose time of death
// is unknown.
func Purge(ctx context.Context, s Store, before time.Time, f pawl.Filter) (purged int, err error) {
	if before.IsZero() {
		return 0, &pawl.InvalidError{Field: "time", Reason: "it is zero; jobs that died before this time are removed"}
	}
	if f.DiedBefore.IsZero() || before.Before(f.DiedBefore) {
		f.DiedBefore = before
	}
	f.State = pawl.Dead
	ids, _, err := choose(ctx, s, f)
	if err == nil {
		purged, err = changeAll(ctx, s, pawl.Change{Verb: pawl.VerbDelete, If: f}, ids)
	}
	if err != nil {
		err = fmt.Errorf("purge dead jobs: %w", err)
	}
	return purged, err
}
