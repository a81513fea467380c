package dlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
)

// FailedJobs is the queue that [ToQueue] uses unless it is told another.
const FailedJobs = "failed_jobs"

// Target is a queue that dead letters are forwarded to; *bolt.Queue and *memory.Queue
// are.
type Target interface {
	pawl.Enqueuer

	// Job returns one job, or pawl.ErrNotFound.
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)
}

// ToQueue is the sink that enqueues each letter in q, on the queue named, or on
// [FailedJobs] when the name is empty.
//
// The job there has the ID, payload, kind, origin, time of creation, headers and
// signature of the letter, so its signature still verifies (by pawl.Keyring.Forwarded if it
// had an idempotency key), and its timeout, retries, policy and priority. As a job it begins anew and is ready at once: it has no schedule,
// deadline, unique key, idempotency key or retention. How it died, and the idempotency key
// that it had, are in headers of its own, see [LetterOf]; a letter whose headers leave no
// room for them is refused.
//
// Where q is the file that the letter is in, which holds each ID once, the job takes the
// place of the letter in one transition, if q is a [Transferer]. A letter on the very
// queue is refused with pawl.ErrConflict, and stays: to run it again where it is, use
// [Retry].
//
// A letter that q holds already since an earlier Forward counts as stored. One that q
// held and finished in between is enqueued again, and so runs there twice.
func ToQueue(q Target, name string) Sink {
	if name == "" {
		name = FailedJobs
	}
	return queueSink{q, name}
}

// Transferer is a [Target] that can move a dead letter within itself.
type Transferer interface {
	// Transfer puts a job in the place of the dead letter of its ID, if that meets a
	// condition, as one transition.
	Transfer(ctx context.Context, job *pawl.Envelope, when pawl.Condition) error
}

type queueSink struct {
	q    Target
	name string
}

// Store implements [Sink].
func (s queueSink) Store(ctx context.Context, letter *pawl.Envelope) error {
	job, err := s.job(letter)
	if err != nil {
		return err
	}
	refused := s.q.Enqueue(ctx, job)
	if !errors.Is(refused, pawl.ErrConflict) {
		return refused
	}
	held, err := s.q.Job(ctx, letter.ID)
	if err != nil {
		return fmt.Errorf("%w; and looking at that one failed: %w", refused, err)
	}
	if held.State == pawl.Dead && held.Queue == letter.Queue && sameDeath(held.Death, letter.Death) {
		if errors.Is(refused, pawl.ErrNotEligible) {
			return refused
		}
		return s.transfer(ctx, job, letter, refused)
	}
	earlier, ok := LetterOf(held)
	if ok && earlier.Queue == letter.Queue && sameDeath(&earlier.Death, letter.Death) {
		return nil
	}
	return refused
}

// transfer moves a letter to another queue of its own file.
func (s queueSink) transfer(ctx context.Context, job, letter *pawl.Envelope, refused error) error {
	if t, ok := s.q.(Transferer); ok && job.Headers[HeaderQueue] != s.name {
		return t.Transfer(ctx, job, Unchanged(letter))
	}
	return fmt.Errorf("%w: that one is the dead letter itself; forward it to another queue or file, or retry it", refused)
}

func sameDeath(a, b *pawl.Death) bool {
	return a != nil && b != nil && a.Reason == b.Reason && a.At.Equal(b.At)
}

// job is the letter as a job of its new queue. What is not here is left behind:
//
//   - NotBefore, Delay: it is to be looked at now.
//
//   - Deadline: once it has passed the job would be dead on arrival.
//
//   - UniqueKey: among the letters of one kind it may come twice, and the second
//     would not be stored.
//
//   - Retain: the record of its success would hold the ID, which a job that dies
//     once more brings again.
//
//   - Attempts, crashes, death and history: they are the queue's to count, and travel
//     in the headers.
//
//   - IdempotencyKey: that one letter was dealt with there must not let the next one
//     with the same key vanish without a run. It travels in a header, where signatures
//     look for it.
func (s queueSink) job(letter *pawl.Envelope) (*pawl.Envelope, error) {
	headers, err := letterHeaders(letter)
	if err != nil {
		return nil, err
	}
	return &pawl.Envelope{
		ID: letter.ID, Origin: letter.Origin, Kind: letter.Kind, Payload: letter.Payload,
		Created: letter.Created, Headers: headers,
		KeyID: letter.KeyID, Signature: letter.Signature,

		Queue: s.name, Priority: letter.Priority, Timeout: letter.Timeout,
		MaxRetries: letter.MaxRetries, Policy: letter.Policy,
	}, nil
}
