// Package dlq manages the dead-letter queue: the dead jobs of a queue, which will not run again.
// A job becomes dead when its retries are exhausted, its handler reports a permanent error, its
// deadline passes, it is cancelled, or it repeatedly crashes its process. Dead jobs stay in the
// queue's file, with the reason and the history of failed attempts, until somebody retries,
// forwards, or deletes them. Nothing removes them automatically.
//
//   - [List] and [Inspect] read them through a [Reader], such as *bolt.Reader.
//   - [Retry] and [RetryAll] make them ready again.
//   - [Forward] moves them to a [Sink]. The sink of [ToQueue] is a queue, in another file or the
//     same one; its handlers learn from [SourceOf] how a job died.
//   - [Delete] and [Purge] remove them permanently.
//
// Changes need a [Store], such as *bolt.Queue and *memory.Queue.
package dlq

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Reader reads dead jobs.
type Reader interface {
	// Jobs iterates over the jobs that match a filter. A damaged job comes with an error that
	// matches pawl.ErrCorrupt, and the iteration continues.
	Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error]

	// Job returns a job with its payload and history, or pawl.ErrNotFound.
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)
}

// Store reads and changes dead jobs. It is used by several goroutines at once.
type Store interface {
	Reader

	// Change applies a change to jobs in one transaction. It returns one result for each ID, in
	// order: nil, pawl.ErrNotFound, pawl.ErrNotEligible if the change does not apply to the job
	// in that transaction, or pawl.ErrConflict if the unique key of a dead job is taken or its
	// deadline has passed. If the second error is not nil, nothing has changed.
	Change(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error)
}

// List iterates over the dead jobs that match f, by default in the order of their death within
// each queue. It ignores the state in f. A damaged job comes with an error that matches
// pawl.ErrCorrupt, and the iteration continues.
func List(ctx context.Context, r Reader, f pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	f.State = pawl.Dead
	return r.Jobs(ctx, f)
}

// Inspect returns a dead job with its history. It returns pawl.ErrConflict for a job in another
// state, and pawl.ErrNotFound for a missing one.
func Inspect(ctx context.Context, r Reader, id pawl.ID) (*pawl.Envelope, error) {
	e, err := r.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	if e.State != pawl.Dead {
		return nil, driver.NotEligible(id, "it is %s, not dead", e.State)
	}
	return e, nil
}

// deaths is the condition that jobs still have the listed deaths. A job that was retried and
// died again does not match.
type deaths map[pawl.ID]pawl.Death

// Matches implements pawl.Condition.
func (d deaths) Matches(job *pawl.Envelope) bool {
	listed, ok := d[job.ID]
	return ok && job.State == pawl.Dead && sameDeath(&listed, job.Death)
}

// ReadsBody returns false: a death is in the record.
func (d deaths) ReadsBody() bool { return false }

// Unchanged returns the condition that a dead job has not been retried since it was read, even if
// it has died again.
func Unchanged(job *pawl.Envelope) pawl.Condition {
	if job.Death == nil {
		return deaths{}
	}
	return deaths{job.ID: *job.Death}
}

// choose returns the readable dead jobs that match f, in list order. Changes begin after the
// iteration has ended.
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

// moved reports whether err means that the job was retried, forwarded or removed since it was
// listed.
func moved(err error) bool {
	return errors.Is(err, pawl.ErrNotFound) || errors.Is(err, pawl.ErrNotEligible)
}

// batchSize is the number of jobs changed in one transaction.
const batchSize = 500

// changeAll applies a change to all jobs and returns how many it changed. It skips jobs that
// moved or are damaged. It continues after other errors, and returns the first of them.
func changeAll(ctx context.Context, s Store, c pawl.Change, ids []pawl.ID) (done int, err error) {
	failed := 0
	for batch := range slices.Chunk(ids, batchSize) {
		errs, failure := s.Change(ctx, c, batch...)
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

// andMore adds the number of further errors to the first one.
func andMore(first error, all int) error {
	if all > 1 {
		return fmt.Errorf("%w (and %d more)", first, all-1)
	}
	return first
}
