package pawl

import "time"

// Event is one transition of one job, reported once, after it became durable. A queue reports its
// events to the function OnEvent in its options, which must neither block nor call the queue, and
// may be called from several goroutines.
type Event struct {
	Type EventType
	At   time.Time // of the transaction, by the queue's clock

	// Job is what the event is about, as it is after the transition, to read. ID, Kind and
	// Queue are there always but for a job whose record is damaged, the rest as far as the
	// transition had to look at it. Payload and history are not.
	Job *Envelope

	Took     time.Duration // of the run, for one that ended
	TimedOut bool          // that run was ended by its timeout
	Delay    time.Duration // until the retry, for EventRetried; how long jobs rest, for the EventReleased of a throttle
	Backoff  time.Duration // what the job spent in backoff, for an EventFetched that ended it; 0 otherwise
	Cause    string        // of a failed run or a death
}

// EventType is what happened to a job.
type EventType string

// The types of events. A transition that is two things is two events: a lease that
// expires for the last time is reaped, and then the job dies.
const (
	EventEnqueued  EventType = "enqueued"
	EventReplaced  EventType = "replaced"  // took the place of a job with its unique key, or of a dead job
	EventFetched   EventType = "fetched"   // leased, for a run
	EventSucceeded EventType = "succeeded" // acked
	EventSkipped   EventType = "skipped"   // removed without a run: its idempotency key was done
	EventRetried   EventType = "retried"   // a run failed and retries remain
	EventDied      EventType = "died"      // became dead; Job.Death says why
	EventReleased  EventType = "released"
	EventSnoozed   EventType = "snoozed"
	EventRunNow    EventType = "run_now"   // an operator ran a delayed job now
	EventReaped    EventType = "reaped"    // its lease expired
	EventRecovered EventType = "recovered" // its process had died
	EventCancelled EventType = "cancelled" // asked to end while it is leased; a job that waits dies at once
	EventRevived   EventType = "revived"   // a dead job was retried
	EventDeleted   EventType = "deleted"   // a dead job or a completed record was removed
	EventEdited    EventType = "edited"    // an operator replaced the payload; a dead job is revived next
)
