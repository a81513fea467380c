package pawl

import (
	"fmt"
	"strings"
	"time"
)

// Envelope is one job as a queue stores it. Whoever enqueues fills in what the
// job is; the queue fills in the rest while it accepts the job, in place.
type Envelope struct {
	// Fixed for the whole life of the job.

	ID      ID                // set by the queue when zero
	Origin  string            // the queue that first accepted the job; set by it unless given
	Kind    string            // which handler runs it; 1 to 255 bytes
	Payload []byte            // the encoded arguments
	Created time.Time         // when the first queue accepted it; set by it unless given
	Headers map[string]string // what travels beside the arguments, such as a trace ID

	// Changed by the queue as the job moves.

	Queue      string        // where it is now; "" means [DefaultQueue]
	Seq        uint64        // enqueue sequence in its file, the last order of jobs; set by the queue
	Priority   int8          // higher runs first
	NotBefore  time.Time     // never fetched earlier; becomes the time since when it is ready
	Timeout    time.Duration // bounds one run; 0 means the worker's
	MaxRetries int           // a job runs at most MaxRetries+1 times
	Policy     *Strategy     // the job's own policy; nil means the kind's or the worker's
	Attempts   int           // completed runs; 0 on a job that never ran
	Crashes    int           // leases in a row that ended in a crash or an expiry
	Death      *Death        // why it is dead; nil while it is alive
	Failures   int           // entries that its history had so far: failed runs, and a death by poison

	// Filled in by inspection only, not stored in the record.

	State       State     // where the job stands
	LeasedSince time.Time // when its lease was given, for a leased job
	History     []Failure // the failed runs that are kept, oldest first

	// Delay is a schedule relative to the moment of acceptance. The queue turns
	// it into NotBefore; it is not stored.
	Delay time.Duration
}

// Attempt is the 1-based number of the run that is under way or comes next.
func (e *Envelope) Attempt() int { return NextAttempt(e.Attempts) }

// LastAttempt reports whether a failure of that run leaves no retry.
func (e *Envelope) LastAttempt() bool { return e.Attempts >= e.MaxRetries }

// Death says why and when a job went to the dead letters.
type Death struct {
	Reason Reason
	At     time.Time
}

// Failure is one failed run in a job's history.
type Failure struct {
	Attempt int // 1-based
	At      time.Time
	Error   string // at most [MaxErrorText] bytes
}

// Reason is why a job is dead.
type Reason string

// The reasons of dead letters.
const (
	ReasonExhausted Reason = "exhausted" // the last retry failed
	ReasonPermanent Reason = "permanent" // the handler or the policy said that no retry helps
	ReasonPoison    Reason = "poison"    // it kept taking its process down
	ReasonCorrupt   Reason = "corrupt"   // its stored record is damaged
)

// State is where a job stands.
type State string

// The states of a job. A job is in exactly one of them.
const (
	Ready   State = "ready"   // waits to be fetched
	Delayed State = "delayed" // waits for its time
	Parked  State = "parked"  // waits for a worker that handles its kind
	Leased  State = "leased"  // is being run
	Dead    State = "dead"    // a dead letter
)

// Limits of what a queue accepts.
const (
	DefaultQueue      = "default"
	DefaultMaxRetries = 3       // four runs
	MaxMaxRetries     = 1000    // the most retries that a job may have
	MaxNameBytes      = 255     // kind, queue and header key
	MaxHeaders        = 64      // headers of one job
	MaxHeaderBytes    = 8 << 10 // keys and values of one job's headers

	DefaultMaxPayload = 1 << 20  // bytes of one payload, unless the queue says otherwise
	MaxBatchJobs      = 10_000   // jobs of one Enqueue
	MaxBatchBytes     = 64 << 20 // payload bytes of one Enqueue

	MaxErrorText    = 4 << 10 // bytes of one error in the history
	HistoryKeepHead = 100     // the oldest failures that the history keeps
	HistoryKeepTail = 100     // and the newest
)

// Validate checks everything about an envelope that does not depend on a queue's
// settings. Its error is an [*InvalidError].
func (e *Envelope) Validate() error {
	if e == nil {
		return invalid("job", "it is nil")
	}
	if err := validName("kind", e.Kind); err != nil {
		return err
	}
	for _, name := range [...]string{e.Queue, e.Origin} {
		if name == "" {
			continue
		}
		if err := ValidQueue(name); err != nil {
			return err
		}
	}
	switch {
	case e.MaxRetries < 0 || e.MaxRetries > MaxMaxRetries:
		return invalid("max retries", "%d is not between 0 and %d", e.MaxRetries, MaxMaxRetries)
	case e.Delay < 0:
		return invalid("delay", "%v is negative; leave it out to run now", e.Delay)
	case e.Timeout < 0:
		return invalid("timeout", "%v is negative; leave it out to use the worker's", e.Timeout)
	case e.Policy != nil && e.Policy.Err() != nil:
		return e.Policy.Err()
	case len(e.Headers) > MaxHeaders:
		return invalid("headers", "%d of them, at most %d are allowed", len(e.Headers), MaxHeaders)
	}
	size := 0
	for key, value := range e.Headers {
		if err := validName("header key", key); err != nil {
			return err
		}
		size += len(key) + len(value)
	}
	if size > MaxHeaderBytes {
		return invalid("headers", "%d bytes of them, at most %d are allowed", size, MaxHeaderBytes)
	}
	return nil
}

// ValidQueue checks the name of a queue. Its error is an [*InvalidError].
func ValidQueue(name string) error { return validName("queue", name) }

// ValidKind checks the name of a kind. Its error is an [*InvalidError].
func ValidKind(name string) error { return validName("kind", name) }

func validName(field, name string) error {
	switch {
	case name == "":
		return invalid(field, "it is empty; give it a name")
	case len(name) > MaxNameBytes:
		return invalid(field, "%q is longer than %d bytes", clip(name, 32), MaxNameBytes)
	case strings.ContainsRune(name, 0):
		return invalid(field, "%q has a NUL byte", name)
	}
	return nil
}

// String is one line for logs.
func (e *Envelope) String() string {
	return fmt.Sprintf("job %s kind=%s queue=%s attempts=%d", e.ID, e.Kind, e.Queue, e.Attempts)
}
