package pawl

import "time"

// Event is one transition of one job, reported once, after it became durable. A queue reports its
// events to the function OnEvent in its options, which must neither block nor call the queue, and
// may be called from several goroutines.
type Event struct {
	Type EventType
	At   time.Time // of the transaction, by the queue's clock

	// Job is the job after the transition. Do not change it. ID, Kind, and Queue are set,
	// except for a job with a damaged record. Other fields are set if the transition read
	// them. Payload and History are not set.
	Job *Envelope

	Took     time.Duration // how long the attempt took, if one ended
	TimedOut bool          // its timeout ended that attempt
	Delay    time.Duration // until the retry, for EventRetried; how long jobs rest, for the EventReleased of a throttle
	Backoff  time.Duration // how long the job was in backoff, for the EventFetched that ended it; 0 otherwise
	Cause    string        // why an attempt failed or the job is dead
}

// EventType is what happened to a job.
type EventType string

// The types of events. One transition may be two events: when a lease expires for the last time,
// the job is reaped and then becomes dead.
const (
	EventEnqueued  EventType = "enqueued"
	EventReplaced  EventType = "replaced"  // took the place of a job with its unique key, or of a dead job
	EventFetched   EventType = "fetched"   // leased, for an attempt
	EventSucceeded EventType = "succeeded" // acked
	EventSkipped   EventType = "skipped"   // removed without an attempt: its idempotency key was done
	EventRetried   EventType = "retried"   // an attempt failed and retries remain
	EventDied      EventType = "died"      // became dead; Job.Death says why
	EventReleased  EventType = "released"
	EventSnoozed   EventType = "snoozed"
	EventRunNow    EventType = "run_now"   // an operator ran a delayed job now
	EventReaped    EventType = "reaped"    // its lease expired
	EventRecovered EventType = "recovered" // its process had died
	EventCancelled EventType = "cancelled" // asked to end while it is leased; a waiting job becomes dead at once
	EventRevived   EventType = "revived"   // a dead job was retried
	EventDeleted   EventType = "deleted"   // a dead job or a completed record was removed
	EventEdited    EventType = "edited"    // an operator replaced the payload; a dead job is then revived
)
