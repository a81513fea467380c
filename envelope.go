package pawl

import (
	"fmt"
	"math"
	"time"
)

// Envelope is one job as a queue stores it. The caller of Enqueue describes the job. The queue fills
// in the rest of the copy that it stores.
type Envelope struct {
	// Fixed for the whole life of the job, except that an edit changes the payload and adds a header.

	ID      ID                // set by the queue when zero
	Origin  string            // the queue that first accepted the job; set by it unless given
	Kind    string            // which handler runs it; 1 to 255 bytes
	Payload []byte            // the encoded arguments
	Created time.Time         // when the first queue accepted it; set by it unless given
	Headers map[string]string // what travels beside the arguments, such as a trace ID

	IdempotencyKey string // names the effect; jobs of one kind and key never run at the same time, nor after one has succeeded
	KeyID          string // which key made Signature
	Signature      []byte // made by [Keyring.Sign]

	// Changed by the queue as the job moves.

	Queue      string        // where it is now; "" means [DefaultQueue]
	Seq        uint64        // number of its enqueue in its file, which orders jobs that are otherwise equal; set by the queue
	Priority   int8          // higher runs first
	Cancelled  bool          // somebody cancelled it during its lease
	NotBefore  time.Time     // never fetched earlier; once ready, when it became ready
	Deadline   time.Time     // bounds its whole life: not fetched at this time or later; zero means none
	Timeout    time.Duration // bounds one attempt; 0 means the worker's
	MaxRetries int           // a job runs at most MaxRetries+1 times
	Policy     *Strategy     // the job's own policy; nil means the kind's or the worker's
	Attempts   int           // completed attempts; 0 on a job that never ran
	Crashes    int           // leases in a row that ended in a crash or an expiry
	Death      *Death        // why it is dead; nil while it is alive
	Failures   int           // entries that its history ever had: failed attempts, deaths by poison, rejected signatures and arguments

	UniqueKey      string        // keeps out a second job of its queue, kind, and key while this one is in a state of UniqueIn; "" means none
	UniqueIn       []State       // the states in which it keeps out another; none means ready, delayed, and leased
	Key            string        // what limits it besides its queue, see [Limits]; "" means none
	Weight         int           // how many turns it has while a job of weight 1 has one, see [Limits.Fair]; 0 means 1
	Cost           int           // how many starts its start counts as, for a [Rate] of its queue or key; 0 means 1
	Group          string        // the group that it is a member of, see package group; "" means none
	HoldsKey       bool          // no other job of its Key runs until it is done, see [Limits.InOrder]; set by the queue
	FairTag        int64         // its place among the jobs of its priority in a queue with [Limits.Fair]; 0 while it has none; set by the queue
	IdempotencyTTL time.Duration // how long a success counts; 0 means [DefaultIdempotencyTTL]
	Retain         time.Duration // how long the record of a success is kept; 0 means not at all
	BackoffSince   time.Time     // when its last attempt failed, while it waits for the retry; zero otherwise
	Completed      time.Time     // when it succeeded, for a record that is retained
	Cursor         []byte        // how far its attempts got, encoded; see [Job.SaveCursor]; nil for none
	Result         []byte        // what the handler returned, encoded, in a record that is retained; nil for none

	// Filled in by inspection only, not stored in the record.

	State       State     // where the job stands
	LeasedSince time.Time // when its lease was granted, for a leased job
	History     []Failure // the failed attempts that are kept, oldest first

	// For Enqueue only, not stored.

	// Delay is how long the job waits after the queue accepts it. The queue turns it into NotBefore.
	Delay time.Duration

	// After and AfterAny name jobs that must succeed, or end either way, before the job starts. In
	// an inspected job they name those that it still waits for.
	After, AfterAny []ID

	// OnConflict is what to do when UniqueKey is taken.
	OnConflict Conflict
}

// Conflict is what an enqueue does when the unique key of its job is taken.
type Conflict uint8

const (
	UseExisting Conflict = iota // store nothing, and return the ID of the job that has the key
	Reject                      // refuse the batch with [ErrConflict]
	Replace                     // keep the ID and take the rest from the new job; a leased job is rejected
)

// Attempt is the 1-based number of the attempt that is under way or comes next. For a dead or a
// completed job it is the number of its last attempt, or 0 if no attempt ever ended.
func (e *Envelope) Attempt() int {
	if e.Death != nil || !e.Completed.IsZero() {
		return e.Attempts
	}
	return nextAttempt(e.Attempts)
}

// LastAttempt reports whether a failure of that attempt leaves no retry.
func (e *Envelope) LastAttempt() bool { return e.Attempts >= e.MaxRetries }

// Death says why and when a job became dead.
type Death struct {
	Reason Reason
	At     time.Time
}

// LastError is the error of the newest failure in the history; "" when there is none, as
// for a job that was cancelled before it ever ran.
func (e *Envelope) LastError() string {
	if len(e.History) == 0 {
		return ""
	}
	return e.History[len(e.History)-1].Error
}

// Failure is one failed attempt in a job's history.
type Failure struct {
	Attempt int // 1-based
	At      time.Time
	Error   string // what the handler returned, or the value of a panic; at most [MaxErrorText] bytes
	Stack   string // of a panic, for operators; at most [MaxErrorText] bytes
}

// Reason is why a job is dead.
type Reason string

// The reasons of dead jobs.
const (
	ReasonExhausted Reason = "exhausted" // the last retry failed
	ReasonPermanent Reason = "permanent" // the handler or the policy said that no retry helps
	ReasonPoison    Reason = "poison"    // it kept taking its process down
	ReasonDeadline  Reason = "deadline"  // its deadline passed
	ReasonCancelled Reason = "cancelled" // an operator or the app ended it
	ReasonSignature Reason = "signature" // its signature is missing or wrong
	ReasonPayload   Reason = "payload"   // its arguments do not fit the type of its worker
	ReasonCorrupt   Reason = "corrupt"   // its stored record is damaged
)

// State is where a job stands.
type State string

// The states of a job. A job is in exactly one of them.
const (
	Ready     State = "ready"     // waits to be fetched
	Delayed   State = "delayed"   // waits for its time
	Leased    State = "leased"    // is being run
	Dead      State = "dead"      // will not run again, until somebody retries it
	Completed State = "completed" // succeeded, and its record is retained
)

// States are all states, in the order of a job's life.
func States() []State { return []State{Ready, Delayed, Leased, Dead, Completed} }

// Limits of what a queue accepts.
const (
	DefaultQueue      = "default"
	DefaultMaxRetries = 3       // four attempts
	MaxMaxRetries     = 1000    // the most retries that a job may have
	MaxNameBytes      = 255     // kind, queue and header key
	MaxHeaders        = 64      // headers of one job
	MaxHeaderBytes    = 8 << 10 // keys and values of one job's headers
	MaxKeyBytes       = 255     // key, unique key, idempotency key and key ID

	MaxAfter = 1000 // jobs that one job waits for

	MaxGroup         = 100_000  // members of a group over its whole life
	MaxGroupCallback = 64 << 10 // bytes of the payload of a group's callback

	DefaultMaxPayload = 1 << 20  // bytes of one payload, unless the queue says otherwise
	MaxBatchJobs      = 10_000   // jobs of one Enqueue
	MaxBatchBytes     = 64 << 20 // payload bytes of one Enqueue

	DefaultIdempotencyTTL = 24 * time.Hour // counted from the success

	MaxErrorText    = 4 << 10 // bytes of one error in the history, and of one stack
	HistoryKeepHead = 100     // the oldest failures that the history keeps
	HistoryKeepTail = 100     // the newest failures that it keeps
)

// String is one line for logs.
func (e *Envelope) String() string {
	return fmt.Sprintf("job %s kind=%s queue=%s attempts=%d", e.ID, e.Kind, e.Queue, e.Attempts)
}

// nextAttempt is the 1-based number of the attempt that follows completed ones. It
// saturates at the largest int.
func nextAttempt(completed int) int {
	if completed == math.MaxInt {
		return completed
	}
	return completed + 1
}
