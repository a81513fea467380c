package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// Delete removes dead letters for good. It stops at the first job that is no dead
// letter, pawl.ErrConflict, or not there, pawl.ErrNotFound, and returns how many it
// removed. One that is damaged gives pawl.ErrCorrupt where the store cannot remove it.
func Delete(ctx context.Context, s Store, ids ...pawl.ID) (int, error) {
	for n, id := range ids {
		err := removeDead(ctx, s, id, pawl.Filter{State: pawl.Dead})
		if errors.Is(err, pawl.ErrCorrupt) { // nobody can say whether it meets a condition
			err = removeDead(ctx, s, id, nil)
		}
		if err != nil {
			return n, fmt.Errorf("delete dead letter: %w", err)
		}
	}
	return len(ids), nil
}

// removeDead deletes one letter that meets a condition.
func removeDead(ctx context.Context, s Store, id pawl.ID, when pawl.Condition) error {
	errs, err := s.Change(ctx, pawl.Change{Verb: pawl.VerbDelete, If: when}, id)
	if err != nil {
		return err
	}
	return errs[0]
}

// Purge removes for good the dead letters that f chooses and that died before a
// time, and returns how many. For all of them give the time of now; the zero time is
// refused, since it is more likely a mistake than a wish. With [pawl.Filter].DiedBefore
// in f the earlier of the two counts.
//
// Each letter is looked at again in the transaction that removes it. So Purge passes over
// letters that somebody else retried or removed first, also over those that died again since,
// and over damaged ones, whose age nobody knows.
func Purge(ctx context.Context, s Store, before time.Time, f pawl.Filter) (purged int, err error) {
	if before.IsZero() {
		return 0, &pawl.InvalidError{Field: "time", Reason: "it is zero; say before when the letters to purge died"}
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
		err = fmt.Errorf("purge dead letters: %w", err)
	}
	return purged, err
}
