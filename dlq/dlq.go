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
	"slices"

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

	// Change carries out a change on each job by itself, all in one transaction, and returns
	// an error for each ID in their order: pawl.ErrNotFound, pawl.ErrNotEligible for a job
	// that the change does not apply to in that transaction, pawl.ErrConflict for a dead
	// letter whose unique key is taken meanwhile or whose deadline has passed. The second
	// error says that the change as a whole did not come through.
	Change(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error)
}

// List iterates over the dead letters that f chooses, in its order: by default that in which
// they died within each queue. The state in f is ignored. A letter whose record is
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
		return nil, pawl.NotEligible(id, "it is %s, not dead", e.State)
	}
	return e, nil
}

// deaths are letters as a list has shown them. As a condition they choose a letter only while
// it is dead of the same death: one that somebody retried and that died again is another.
type deaths map[pawl.ID]pawl.Death

// Matches implements pawl.Condition.
func (d deaths) Matches(job *pawl.Envelope) bool {
	listed, ok := d[job.ID]
	return ok && job.State == pawl.Dead && sameDeath(&listed, job.Death)
}

// ReadsBody implements pawl.Condition.
func (d deaths) ReadsBody() bool { return false }

// Unchanged is the condition that a dead letter is still what it was when it was read: dead of
// the same death. A job that was retried and died again since is another letter.
func Unchanged(letter *pawl.Envelope) pawl.Condition {
	if letter.Death == nil {
		return deaths{}
	}
	return deaths{letter.ID: *letter.Death}
}

// choose returns the letters that f chooses and that can be read, in the order of the list.
// What is done with them happens after the iteration has ended.
func choose(ctx context.Context, r Reader, f pawl.Filter) (ids []pawl.ID, listed deaths, err error) {
	listed = make(deaths)
	for e, err := range List(ctx, r, f) {
		switch {
		case errors.Is(err, pawl.ErrCorrupt) && e != nil:
		case err != nil:
			return nil, nil, err
		default:
			ids = append(ids, e.ID)
			if e.Death != nil {
				listed[e.ID] = *e.Death
			}
		}
	}
	return ids, listed, nil
}

// moved reports whether err says that somebody else was first with a letter: that it
// is gone, or is not what it was when it was listed.
func moved(err error) bool {
	return errors.Is(err, pawl.ErrNotFound) || errors.Is(err, pawl.ErrNotEligible)
}

// together is how many letters are changed in one transaction.
const together = 500

// changeAll carries out a change on all letters, and returns on how many it was. It passes
// over letters that moved or cannot be read. A letter that fails keeps none of the others
// back; the error is that of the first.
func changeAll(ctx context.Context, s Store, c pawl.Change, ids []pawl.ID) (done int, err error) {
	failed := 0
	for portion := range slices.Chunk(ids, together) {
		errs, failure := s.Change(ctx, c, portion...)
		if failure != nil {
			return done, failure
		}
		for _, one := range errs {
			switch {
			case one == nil:
				done++
			case moved(one), errors.Is(one, pawl.ErrCorrupt):
			default:
				if failed++; failed == 1 {
					err = one
				}
			}
		}
	}
	return done, andMore(err, failed)
}

// andMore is the first of some errors, with the number of the others.
func andMore(first error, all int) error {
	if all > 1 {
		return fmt.Errorf("%w (and %d more)", first, all-1)
	}
	return first
}
