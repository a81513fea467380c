package pawl

import (
	"context"
	"time"
)

// Enqueuer is the half of a [Queue] that takes jobs in.
type Enqueuer interface {
	// Enqueue stores jobs, all or none, and returns when they are durable. It
	// completes the envelopes in place: ID (unless set), Origin, Created, Queue,
	// Seq and NotBefore; a given ID, Origin or Created stays. A job whose NotBefore
	// lies in the past is ready at once. Jobs that are refused are not changed; after
	// [ErrUnknownOutcome] they are complete, so that they can be looked up by ID.
	//
	// Errors: [ErrInvalid], [ErrPayloadTooLarge], [ErrBatchTooLarge], [ErrConflict]
	// when the queue holds a job of the same ID or the batch has one twice,
	// [ErrNotAccepted] when ctx ended first. Once accepted, Enqueue waits for the
	// commit whatever ctx does.
	Enqueue(ctx context.Context, jobs ...*Envelope) error
}

// Queue is the contract between those who store jobs and those who run them.
//
// Every method is safe for concurrent use and is one atomic transition: a crash
// leaves the state before it or the state after it, and a nil error means that it
// is durable. Every settling method names a lease, and compares its token with
// the job's in the same transaction: a stale holder gets [ErrLeaseLost] and
// changes nothing. After Close they return [ErrClosed].
//
// A method whose ctx ends before its transaction began returns [ErrNotAccepted],
// which wraps ctx's error, and has changed nothing; after that it waits for the
// commit. Unpark and Reap may take several transactions, and count what those did
// that came through. A commit that fails for good gives [ErrUnknownOutcome], and
// every later call [ErrPoisoned].
//
// The queue counts attempts; whether a failed job is retried or abandoned is its
// worker's decision, by MaxRetries.
type Queue interface {
	Enqueuer

	// Fetch leases up to r.Max jobs and counts no attempt. It waits for a job as
	// r.Wait says, and no longer than ctx ([ErrNotAccepted]). Jobs come by
	// priority, then by the time since when they are ready, then by sequence;
	// several queues in r.Queues take turns. See [Request] for jobs that crashed.
	Fetch(ctx context.Context, r Request) ([]*Lease, error)

	// Ack removes a job whose run succeeded.
	Ack(ctx context.Context, l *Lease) error

	// Nack counts a failed attempt, keeps cause in the job's history and makes the
	// job ready after delay, at once when delay is 0.
	Nack(ctx context.Context, l *Lease, delay time.Duration, cause error) error

	// Abandon counts a failed attempt, keeps cause and moves the job to the dead
	// letters. A worker gives [ReasonExhausted] or [ReasonPermanent].
	Abandon(ctx context.Context, l *Lease, reason Reason, cause error) error

	// Release returns an interrupted job to its old place in the order. It counts
	// nothing.
	Release(ctx context.Context, l *Lease) error

	// Snooze makes a job ready after delay. It counts nothing.
	Snooze(ctx context.Context, l *Lease, delay time.Duration) error

	// Park puts a job aside until [Queue.Unpark] names its kind. It counts nothing.
	Park(ctx context.Context, l *Lease) error

	// Unpark makes the parked jobs of these kinds ready, in their old place in the
	// order, and returns how many there were.
	Unpark(ctx context.Context, kinds ...string) (int, error)

	// Extend renews leases for their full length from now and returns those that
	// were lost meanwhile. It does not change the Lease values.
	Extend(ctx context.Context, leases ...*Lease) (lost []*Lease, err error)

	// Reap takes back every lease that has expired, and returns how many. A queue
	// reaps by itself too; each reaped job counts a crash.
	Reap(ctx context.Context) (int, error)
}

// Request says what to fetch.
type Request struct {
	// Queues names where to look; none means [DefaultQueue].
	Queues []string

	// Max is the most jobs to return, 1 or more.
	Max int

	// Ahead says how many of them would wait behind a running job; the others start
	// at once. 0 means that all do. A job that crashed before is leased only as one
	// that starts at once, so that it takes as few others down with it as can be:
	// with Ahead equal to Max it is passed over. Of jobs that crashed twice or more
	// the queue leases one at a time.
	Ahead int

	// Wait says when to give up.
	Wait Wait
}

// Wait says when a Fetch that finds nothing returns [ErrEmpty].
type Wait uint8

const (
	WaitForJob   Wait = iota // never: wait until a job comes
	WaitNot                  // at once
	WaitDrained              // when the queues hold no ready and no leased job
	WaitFinished             // when they hold no ready, leased or delayed job; parked ones do not count
)

// Lease is the right to run one job until a time. Holding it proves nothing after
// Expires: the token is compared when it is used.
type Lease struct {
	*Envelope
	Token   uint64
	Length  time.Duration // how long a lease lasts from when it is given or extended
	Expires time.Time     // when this one ends unless it is extended
}
