// Package dlq looks after dead letters: jobs whose retries are exhausted, which no
// retry can help, whose deadline passed, which were cancelled, or which kept taking
// their process down. They stay in the file of their queue, with the reason and the
// history of their failed runs, until somebody retries, forwards or deletes them.
// Nothing trims them, and nothing here happens by itself.
//
//   - [List] and [Inspect] look at them. They need a [Reader], which *bolt.Reader is.
//   - [Retry] and [RetryAll] make them ready again.
//   - [Forward] moves them to a [Sink]: with [ToQueue] to a queue in another file,
//     where [LetterOf] tells a handler how they died, or to whatever the program says.
//   - [Delete] and [Purge] remove them for good.
//
// What changes them needs a [Store], which *bolt.Queue and *memory.Queue are.
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

	// Job returns one job with its payload and history, or pawl.ErrNotFound.
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)
}

// Store is what it needs to change them. Its methods are called from several
// goroutines at once.
type Store interface {
	Reader

	// Retry takes a dead letter back to ready. Its attempts start again from 0
	// unless they are kept. A job in another state gives pawl.ErrConflict, and so
	// does one whose unique key is taken meanwhile or whose deadline has passed.
	Retry(ctx context.Context, id pawl.ID, keepAttempts bool) error

	// Delete removes a dead letter, or a completed record, for good. A job in another
	// state gives pawl.ErrConflict, one that is not there pawl.ErrNotFound.
	Delete(ctx context.Context, id pawl.ID) error
}

// List iterates over the dead letters that f chooses, in the order in which they
// died within each queue. The state in f is ignored. A letter whose record is
// damaged comes with an error that matches pawl.ErrCorrupt, and the list goes on.
func List(ctx context.Context, r Reader, f pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	f.State = pawl.Dead
	return r.Jobs(ctx, f)
}

// Inspect returns one dead letter with its whole history. A job in another state
// gives pawl.ErrConflict, one that is not there pawl.ErrNotFound.
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

// choose returns the IDs of the letters that f chooses and that can be read, in the
// order of the list. What is done with them happens after the iteration has ended.
func choose(ctx context.Context, r Reader, f pawl.Filter) (ids []pawl.ID, err error) {
	for e, err := range List(ctx, r, f) {
		switch {
		case errors.Is(err, pawl.ErrCorrupt) && e != nil:
		case err != nil:
			return nil, err
		default:
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}

// moved reports whether err says that somebody else was first with a letter: that it
// is gone, or no dead letter any more.
func moved(err error) bool {
	return errors.Is(err, pawl.ErrNotFound) || errors.Is(err, pawl.ErrConflict)
}
