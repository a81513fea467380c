package pawl

import "context"

// Enqueuer is the half of a [Queue] that takes jobs in.
type Enqueuer interface {
	// Enqueue stores jobs, all or none, and returns when they are durable. It returns what became
	// of each job, in the order of the jobs, and does not change the envelopes. In the copy that
	// it stores it fills in ID, Origin and Created unless they are set, Queue, Seq and NotBefore.
	// A job whose NotBefore lies in the past is ready at once. With [ErrUnknownOutcome] it also
	// returns what became of the jobs if they are stored, so that they can be looked up by ID.
	// With any other error nothing is stored, and it returns nothing else.
	//
	// If the UniqueKey of a job is taken, in the queue or by an earlier job of the batch, its
	// OnConflict decides. If that is UseExisting, Enqueue stores nothing for it and returns the
	// ID of the job that has the key, with Existing set.
	//
	// Errors: [ErrInvalid], [ErrPayloadTooLarge], [ErrBatchTooLarge], [ErrConflict] when the queue
	// holds a job of the same ID, the batch has an ID or an envelope twice, or a unique key is taken,
	// [ErrQueueFull], [ErrNotAccepted] when ctx ended first. Once accepted, Enqueue waits for the
	// commit even if ctx ends.
	Enqueue(ctx context.Context, jobs ...*Envelope) ([]Enqueued, error)
}

// Enqueued says what became of a job that was enqueued.
type Enqueued struct {
	// ID is the ID of the job, or of the job that has its unique key.
	ID ID

	// Existing says that another job has the unique key, and that nothing was stored.
	Existing bool
}

// Queue is the contract between code that stores jobs and code that runs them.
//
// Every method is safe for concurrent use and is one atomic transition: a crash
// leaves the state before it or the state after it, and a nil error means that it
// is durable. Settle and Extend compare the token of a lease with the job's in the
// same transaction: a stale holder gets [ErrLeaseLost] and changes nothing. After
// Close they return [ErrClosed].
//
// If ctx ends before the transaction of a method has begun, the method changes nothing and returns
// [ErrNotAccepted], which wraps ctx's error. After that the method waits for the commit. Reap may
// take several transactions, and counts the jobs of those that were committed. A commit that fails
// for good returns [ErrUnknownOutcome]. If the queue cannot continue, that error also matches
// [ErrPoisoned], and so does the error of every later call.
//
// The queue counts attempts. The worker decides by MaxRetries whether a failed job is retried or
// abandoned. There are two exceptions. A job past its Deadline becomes dead instead of ready or
// delayed. A job that was Cancelled becomes dead when its lease ends, unless it is acked.
type Queue interface {
	Enqueuer

	// Fetch leases up to r.Max jobs of r.Kinds, fewer where payloads are large but at least
	// one, and counts no attempt. It waits for a job as r.Wait says, and no longer than ctx
	// ([ErrNotAccepted]). Jobs of all kinds asked for come in one order: by priority, then by
	// the time since when they are ready, then by sequence; several queues in r.Queues take
	// turns. It never leases a job past its deadline. It passes over a job while another job
	// of its kind with its IdempotencyKey is leased, and removes it without an attempt once that
	// key is done. See [Request] for jobs that crashed.
	Fetch(ctx context.Context, r Request) ([]*Lease, error)

	// Settle ends leases, each as its settlement says: see [Lease.Ack], [Lease.Nack],
	// [Lease.Abandon], [Lease.Release] and [Lease.Snooze]. It is one transition, in which each
	// settlement counts by itself: a [*SettleError] names the leases that could not be settled,
	// and all the others are. If a job has two settlements, the first counts, and the second gets
	// [ErrLeaseLost]. Errors for the whole call, after which nothing is settled:
	// [ErrBatchTooLarge] for more than [MaxBatchJobs] settlements, and [ErrInvalid] for a
	// settlement without a lease or an outcome. Once it has returned nil it does not read the
	// settlements again, so its caller can reuse their memory.
	Settle(ctx context.Context, settlements ...Settlement) error

	// Extend renews leases for their full length from now and returns those that
	// were lost meanwhile. It does not change the Lease values.
	Extend(ctx context.Context, leases ...*Lease) (lost []*Lease, err error)

	// Reap takes back every lease that has expired, and returns how many. A queue
	// reaps by itself too; each reaped job counts a crash.
	Reap(ctx context.Context) (int, error)
}

// MaxWeight is the highest weight of a queue in a [Request].
const MaxWeight = 1000

// Request says what to fetch.
type Request struct {
	// Queues names where to look; none means [DefaultQueue].
	Queues []string

	// Kinds names the kinds of the jobs to return. A job of another kind stays ready where it
	// is: it is neither counted nor waited for. Nil means every kind, which is for tools; a
	// worker names the kinds that it handles.
	Kinds []string

	// Weights says how many turns a queue has while a queue of weight 1 has one, from 1 to
	// [MaxWeight]. A queue that is not named has weight 1.
	Weights map[string]int

	// Max is the most jobs to return, 1 or more.
	Max int

	// RetryShare is the share of retries among the jobs of each queue, while it has
	// both retries and first attempts: above 0 and up to 1. Fractions of a job carry over
	// to later fetches. If one sort runs out, the other fills up. 0 means that both
	// come in their common order.
	RetryShare float64

	// Ahead says how many of them would wait behind a running job; the others start
	// at once. 0 means that all start at once. A job that crashed before is leased only as one
	// that starts at once, so that it takes down as few others as possible: with
	// Ahead equal to Max it is passed over. The queue leases only one job at a time
	// of those that crashed twice or more.
	Ahead int

	// Wait says when to give up.
	Wait Wait
}

// Wait says when a Fetch that finds nothing returns [ErrEmpty]. Only jobs of the kinds that it
// asks for count.
type Wait uint8

const (
	WaitForJob   Wait = iota // never: wait until a job comes
	WaitNot                  // at once
	WaitDrained              // when the queues hold no ready and no leased job
	WaitFinished             // when they hold no ready, leased or delayed job
)
