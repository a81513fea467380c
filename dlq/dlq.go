// Package dlq looks after dead letters: jobs whose retries are exhausted, which no
// retry can help, or which kept taking their process down. They stay in the file
// of their queue, with the reason and the history of their failed runs, until
// somebody retries them. Nothing trims them.
//
// The functions work on a [Store], which *bolt.Queue is; [List] and [Inspect] need
// a [Reader] alone, which *bolt.Reader is too.
package dlq

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/gopawl/pawl"
)

// Reader is what this package needs to look at dead letters.
type Reader interface {
	// Jobs iterates over the jobs that a filter chooses. A job that cannot be read
	// comes with an error that matches pawl.ErrCorrupt, and the iteration goes on.
	Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error]

	// Job returns one job, or pawl.ErrNotFound.
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)
}

// Store is what it needs to change them.
type Store interface {
	Reader

	// Retry takes a dead letter back to ready. Its attempts start again from 0
	// unless they are kept. A job in another state gives pawl.ErrConflict.
	Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error
}

// List iterates over the dead letters that f chooses, in the order in which they
// died within each queue. The state in f is ignored. A letter whose record is
// damaged comes with an error that matches pawl.ErrCorrupt, and the list goes on.
func List(ctx context.Context, r Reader, f pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	f.State = pawl.Dead
	return r.Jobs(ctx, f)
}

// Inspect returns one dead letter with its whole history. A job that is alive gives
// pawl.ErrConflict, one that is not there pawl.ErrNotFound.
func Inspect(ctx context.Context, r Reader, id pawl.ID) (*pawl.Envelope, error) {
	e, err := r.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	if e.State != pawl.Dead {
		return nil, fmt.Errorf("job %s: %w: it is %s, not dead", id, pawl.ErrConflict, e.State)
	}
	return e, nil
}

// RetryOptions are the settings of a retry; nil means the defaults.
type RetryOptions struct {
	// KeepAttempts goes on counting where the job stopped, which leaves a job whose
	// retries are exhausted a single run. By default it starts again from 0.
	KeepAttempts bool
}

// Retry makes dead letters ready again, with their history. It stops at the first
// that cannot be retried and returns how many were.
func Retry(ctx context.Context, s Store, opts *RetryOptions, ids ...pawl.ID) (int, error) {
	keep := opts != nil && opts.KeepAttempts
	for n, id := range ids {
		if err := s.Retry(ctx, id, keep); err != nil {
			return n, fmt.Errorf("retry dead letter: %w", err)
		}
	}
	return len(ids), nil
}

// RetryAll makes all the dead letters ready that f chooses and that are dead at the
// beginning: one that dies again meanwhile stays dead. It passes over damaged
// letters and over those that somebody else retried first, and returns how many it
// retried.
func RetryAll(ctx context.Context, s Store, opts *RetryOptions, f pawl.Filter) (retried int, err error) {
	var ids []pawl.ID
	for e, err := range List(ctx, s, f) {
		if errors.Is(err, pawl.ErrCorrupt) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("retry dead letters: %w", err)
		}
		ids = append(ids, e.ID)
	}
	for _, id := range ids {
		switch n, err := Retry(ctx, s, opts, id); {
		case errors.Is(err, pawl.ErrConflict), errors.Is(err, pawl.ErrNotFound):
		case err != nil:
			return retried, err
		default:
			retried += n
		}
	}
	return retried, nil
}
