package dlq

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
)

// RetryOptions are the settings of a retry; nil means the defaults.
type RetryOptions struct {
	// KeepAttempts goes on counting where the job stopped, which leaves a job whose
	// retries are exhausted a single run. By default it starts again from 0.
	KeepAttempts bool
}

func (o *RetryOptions) change(when pawl.Condition) pawl.Change {
	return pawl.Change{Verb: pawl.VerbRetry, KeepAttempts: o != nil && o.KeepAttempts, If: when}
}

// Retry makes dead letters ready again, with their history. It stops at the first
// that cannot be retried and returns how many were.
func Retry(ctx context.Context, s Store, opts *RetryOptions, ids ...pawl.ID) (int, error) {
	for n, id := range ids {
		errs, err := s.Change(ctx, opts.change(nil), id)
		if err == nil {
			err = errs[0]
		}
		if err != nil {
			return n, fmt.Errorf("retry dead letter: %w", err)
		}
	}
	return len(ids), nil
}

// RetryAll makes all the dead letters ready that f chooses and that are dead at the
// beginning: one that dies again meanwhile stays dead. It passes over damaged
// letters and over those that somebody else retried or removed first, and returns
// how many it retried.
//
// A letter that stays dead since its unique key is taken, or its deadline has passed,
// does not keep the others back: the error is that of the first such letter.
func RetryAll(ctx context.Context, s Store, opts *RetryOptions, f pawl.Filter) (retried int, err error) {
	ids, listed, err := choose(ctx, s, f)
	if err == nil {
		retried, err = changeAll(ctx, s, opts.change(listed), ids)
	}
	if err != nil {
		err = fmt.Errorf("retry dead letters: %w", err)
	}
	return retried, err
}
