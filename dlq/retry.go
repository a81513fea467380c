package dlq

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
)

// RetryOptions configures a retry. Nil means the defaults.
type RetryOptions struct {
	// KeepAttempts continues the attempt count, so a job whose retries are exhausted runs once
	// more. By default the count restarts at 0.
	KeepAttempts bool
}

func (o *RetryOptions) change(when pawl.Condition) pawl.Change {
	return pawl.Change{Verb: pawl.VerbRetry, KeepAttempts: o != nil && o.KeepAttempts, If: when}
}

// Retry makes dead jobs ready again, with their history, and returns how many it changed. It stops at
// the first error.
func Retry(ctx context.Context, s Store, opts *RetryOptions, ids ...pawl.ID) (int, error) {
	for n, id := range ids {
		errs, err := s.Change(ctx, opts.change(nil), id)
		if err == nil {
			err = errs[0]
		}
		if err != nil {
			return n, fmt.Errorf("retry dead job: %w", err)
		}
	}
	return len(ids), nil
}

// RetryAll makes the dead jobs that match f ready again and returns how many it changed. A job that
// dies again before RetryAll returns stays dead. RetryAll skips damaged jobs, and jobs that others
// retried or removed since they were listed. It continues after other errors, such as a unique key
// that is taken or a deadline that has passed, and returns the first.
func RetryAll(ctx context.Context, s Store, opts *RetryOptions, f pawl.Filter) (retried int, err error) {
	ids, listed, err := choose(ctx, s, f)
	if err == nil {
		retried, err = changeAll(ctx, s, opts.change(listed), ids)
	}
	if err != nil {
		err = fmt.Errorf("retry dead jobs: %w", err)
	}
	return retried, err
}
