// Package pawl is the vocabulary of a durable job queue: what a job is, how it
// is stored, what a queue promises, and when a failed job runs again.
//
// Few nouns carry everything:
//
//   - [Kind] names a sort of job and ties it to the Go type of its arguments.
//   - [Envelope] is one job as a queue stores it.
//   - [Queue] is the contract: Enqueue, Fetch, and the verbs that settle what
//     was fetched.
//   - [Lease] is the right to run one envelope until a time.
//   - [Policy] says how long a failed job waits; [Strategy] is the policy that
//     is data and travels in the envelope.
//   - [Event] is what happened to a job, reported once it is durable.
//   - [Logger] is what the packages log to, such as *slog.Logger.
//   - [Keyring] signs jobs and verifies their signatures.
//
// A job flows one way. [Kind.Enqueue] encodes the arguments and hands an
// envelope to the queue, which stores it before it returns. A worker fetches a
// lease, runs the handler once, and settles: Ack when it returned nil, Nack or
// Abandon when it failed, Release when it was interrupted, Snooze when it asked
// to come back later.
//
// Delivery is at least once: a job runs again when its process died, when it
// stuck past its lease, or when it was interrupted, so handlers are idempotent.
//
// The queue in a bbolt file is package bolt; package worker runs handlers over
// any [Queue]; package dlq looks after dead letters; package metrics has the counters of a
// queue; package driver is for those who write a queue. This package opens no file and starts
// no goroutine.
package pawl
