package pawl

import "context"

// Enqueuer is the half of a [Queue] that takes jobs in.
type Enqueuer interface {
	// Enqueue stores jobs, all or none, and returns when they are durable. It returns what
	// became of each job, in the order of the jobs, and does not change the envelopes. In the
	// copy that it stores it fills in ID, Origin and Created unless they are set, Queue, Seq and
	// NotBefore. A job whose NotBefore lies in the past is ready at once. Together with
	// [ErrUnknownOutcome] it returns what became of the jobs if they are stored, so that they
	// can be looked up by ID. Any other error means that nothing is stored, and comes alone.
	//
	// If the UniqueKey of a job is taken, in the queue or by an earlier job of the batch, its
	// OnConflict decides. If that is UseExisting, Enqueue stores nothing for it and returns the
	// ID of the job that has the key, with Existing set.
	//
	// Errors: [ErrInvalid], [ErrPayloadTooLarge], [ErrBatchTooLarge], [ErrConflict]
	// when the queue holds a job of the same ID, the batch has an ID or an envelope twice, or a
	// unique key is taken, [ErrQueueFull], [ErrNotAccepted] when ctx ended first. Once accepted, Enqueue waits for the
	// commit whatever ctx does.
	Enqueue(ctx context.Context, jobs ...*Envelope) ([]Enqueued, error)
}

// Enqueued says what became of a job that was enqueued.
type Enqueued struct {
	// ID is the ID of the job, or of the job that has its unique key.
	ID ID

	// Existing says that another job has the unique key, and that nothing was stored.
	Existing bool
}

// Queue is the contract between those who store jobs and those who run them.
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
// abandoned. There are two exceptions. A job past its Deadline becomes dead in place of ready or
// delayed. A job that was Cancelled becomes dead when its lease ends, except by an ack.
type Queue interface {
	Enqueuer

	// Fetch leases up to r.Max jobs of r.Kinds, fewer where payloads are large but at least
	// one, and counts no attempt. It waits for a job as r.Wait says, and no longer than ctx
	// ([ErrNotAccepted]). Jobs of all kinds asked for come in one order: by priority, then by
	// the time since when they are ready, then by sequence; several queues in r.Queues take
	// turns. A job past its deadline is never leased;
	// one whose IdempotencyKey is leased under another job of its kind is passed over;
	// and one whose key was done is removed without a run. See [Request] for jobs that
	// crashed.
	Fetch(ctx context.Context, r Request) ([]*Lease, error)

	// Settle ends leases, each as its settlement says: see [Lease.Ack], [Lease.Nack],
	// [Lease.Abandon], [Lease.Release] and [Lease.Snooze]. It is one transition, in which each
	// settlement counts by itself: a [*SettleError] names the leases that could not be settled,
	// and all the others are. Of two settlements of one job the first counts, and the second is
	// named with [ErrLeaseLost]. Errors for the whole call, after which nothing is settled:
	// [ErrBatchTooLarge] for more than [MaxBatchJobs] settlements, and [ErrInvalid] for one
	// without a lease or of no outcome. After it has returned nil it does not read the settlements
	// again, so that its caller can use their memory for others.
	Settle(ctx context.Context, settlements ...Settlement) error

	// Extend renews leases for their full length from now and returns those that
	// were lost meanwhile. It does not change the Lease values.
	Extend(ctx context.Context, leases ...*Lease) (lost []*Lease, err error)

	// Reap takes back every lease that has expired, and returns how many. A queue
	// reaps by itself too; each reaped job counts a crash.
	Reap(ctx context.Context) (int, error)
}

// MaxWeight is the most turns that a queue may have to one of another.
const MaxWeight = 1000

// Request says what to fetch.
type Request struct {
	// Queues names where to look; none means [DefaultQueue].
	Queues []string

	// Kinds names the kinds of the jobs to return. A job of another kind stays ready where it
	// is: it is neither counted nor waited for. Nil means every kind, which is for tools; a
	// worker names the kinds that it handles.
	Kinds []string

	// Weights says how many turns a queue has while one of weight 1 has one, from 1 to
	// [MaxWeight]; 1 where it is not named.
	Weights map[string]int

	// Max is the most jobs to return, 1 or more.
	Max int

	// RetryShare is the part of the jobs of each queue that are retries while it has
	// both retries and first runs, above 0 and up to 1; what is left of it counts for
	// later fetches. Where one sort runs out the other fills up. 0 means that both
	// come in their common order.
	RetryShare float64

	// Ahead says how many of them would wait behind a running job; the others start
	// at once. 0 means that all do. A job that crashed before is leased only as one
	// that starts at once, so that it takes as few others down with it as can be:
	// with Ahead equal to Max it is passed over. Of jobs that crashed twice or more
	// the queue leases one at a time.
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
