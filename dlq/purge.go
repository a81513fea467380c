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
		_, err := Inspect(ctx, s, id)
		if err == nil || errors.Is(err, pawl.ErrCorrupt) {
			err = s.Delete(ctx, id)
		}
		if err != nil {
			return n, fmt.Errorf("delete dead letter: %w", err)
		}
	}
	return len(ids), nil
}

// Purge removes for good the dead letters that f chooses and that died before a
// time, and returns how many. For all of them give the time of now; the zero time is
// refused, since it is more likely a mistake than a wish. With [pawl.Filter].DiedBefore
// in f the earlier of the two counts.
//
// It passes over letters that somebody else retried or removed first, and over
// damaged ones, whose age nobody knows.
func Purge(ctx context.Context, s Store, before time.Time, f pawl.Filter) (purged int, err error) {
	if before.IsZero() {
		return 0, &pawl.InvalidError{Field: "time", Reason: "it is zero; say before when the letters to purge died"}
	}
	if f.DiedBefore.IsZero() || before.Before(f.DiedBefore) {
		f.DiedBefore = before
	}
	ids, err := choose(ctx, s, f)
	if err != nil {
		return 0, fmt.Errorf("purge dead letters: %w", err)
	}
	purged, err = each(ctx, ids, together, func(id pawl.ID) (bool, error) {
		err := s.Delete(ctx, id)
		if moved(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		err = fmt.Errorf("purge dead letters: %w", err)
	}
	return purged, err
}
