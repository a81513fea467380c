package dlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
)

// FailedJobs is the default queue of [ToQueue].
const FailedJobs = "failed_jobs"

// Target is a queue to forward to, such as *bolt.Queue and *memory.Queue.
type Target interface {
	pawl.Enqueuer

	// Job returns a job, or pawl.ErrNotFound.
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)
}

// ToQueue returns a sink that enqueues each dead job in q, on the named queue, by default
// [FailedJobs].
//
// The new job has the ID, payload, kind, origin, creation time, headers, signature, timeout, retries, policy and
// priority of the dead one, so its signature stays valid; if it had an idempotency key, pawl.Keyring.Forwarded verifies
// it. The job is ready at once, with no attempts, schedule, deadline, unique key, idempotency key, or retention.
// Additional headers say how the job died and which idempotency key it had; see [SourceOf]. Store refuses a job whose
// own headers leave no room for them.
//
// A store holds each ID only once. So if q is the store of the dead job and a [Transferer], the new
// job replaces the dead one in one transition. Forwarding to the job's own queue is refused with
// pawl.ErrConflict; use [Retry] for that.
//
// A job that q already holds from an earlier Forward counts as stored. If that job has already
// finished and was removed, it is enqueued again and runs twice.
func ToQueue(q Target, name string) Sink {
	if name == "" {
		name = FailedJobs
	}
	return queueSink{q, name}
}

// Transferer is a [Target] that can replace its own dead jobs.
type Transferer interface {
	// Transfer replaces the dead job with the same ID in one transition, if it meets the
	// condition.
	Transfer(ctx context.Context, job *pawl.Envelope, when pawl.Condition) error
}

type queueSink struct {
	q    Target
	name string
}

// Store implements [Sink].
func (s queueSink) Store(ctx context.Context, dead *pawl.Envelope) error {
	job, err := s.job(dead)
	if err != nil {
		return err
	}
	_, refused := s.q.Enqueue(ctx, job)
	if !errors.Is(refused, pawl.ErrConflict) {
		return refused
	}
	held, err := s.q.Job(ctx, dead.ID)
	if err != nil {
		return fmt.Errorf("%w; reading that job failed: %w", refused, err)
	}
	if held.State == pawl.Dead && held.Queue == dead.Queue && sameDeath(held.Death, dead.Death) {
		if errors.Is(refused, pawl.ErrNotEligible) {
			return refused
		}
		return s.transfer(ctx, job, dead, refused)
	}
	earlier, ok := SourceOf(held)
	if ok && earlier.Queue == dead.Queue && sameDeath(&earlier.Death, dead.Death) {
		return nil
	}
	return refused
}

// transfer moves a dead job to another queue of its own store.
func (s queueSink) transfer(ctx context.Context, job, dead *pawl.Envelope, refused error) error {
	if t, ok := s.q.(Transferer); ok && job.Headers[HeaderQueue] != s.name {
		return t.Transfer(ctx, job, Unchanged(dead))
	}
	return fmt.Errorf("%w: that job is the dead job itself; forward it to another queue or file, or retry it", refused)
}

func sameDeath(a, b *pawl.Death) bool {
	return a != nil && b != nil && a.Reason == b.Reason && a.At.Equal(b.At)
}

// job returns the job to enqueue. It leaves out:
//
//   - NotBefore and Delay, because the job should run now
//   - Deadline, because a passed deadline would make the job dead at once
//   - UniqueKey, because several dead jobs may have the same one
//   - Key, because limits belong to a queue
//   - Group, because the group stays where it is, and counts the job as removed
//   - Retain, because the record of its success would block the ID, which a job that dies again
//     brings back
//   - Attempts, crashes, death and history, which belong to the queue and are in the headers
//   - IdempotencyKey, because the success of one job must not suppress later jobs with the same key;
//     it is in a header, where signatures cover it
func (s queueSink) job(dead *pawl.Envelope) (*pawl.Envelope, error) {
	headers, err := sourceHeaders(dead)
	if err != nil {
		return nil, err
	}
	return &pawl.Envelope{
		ID: dead.ID, Origin: dead.Origin, Kind: dead.Kind, Payload: dead.Payload,
		Created: dead.Created, Headers: headers,
		KeyID: dead.KeyID, Signature: dead.Signature,

		Queue: s.name, Priority: dead.Priority, Timeout: dead.Timeout,
		MaxRetries: dead.MaxRetries, Policy: dead.Policy, Cursor: dead.Cursor,
	}, nil
}
