// Package pawl defines jobs, and the contract of a durable queue: how a job is stored, what a
// queue promises, and when a failed job runs again.
//
// A program defines a [Kind] for each type of job, opens a queue, enqueues jobs, and runs a
// worker that has a handler for each kind:
//
//	var SendWelcome = pawl.Define[Welcome]("mail.welcome")
//
//	q, err := bolt.Open("jobs.db", nil)
//	_, err = SendWelcome.Enqueue(ctx, q, Welcome{To: "ada@example.com"})
//	w := worker.New(q, nil)
//	worker.Handle(w, SendWelcome, sendWelcome)
//	err = w.Run(ctx)
//
// The main types are:
//
//   - [Kind] is a type of job: a name, and the Go type of the arguments. A [Task] is a kind whose
//     handler returns a result.
//   - [Job] is what a handler receives.
//   - [Envelope] is one job as a queue stores it.
//   - [Queue] is the contract of a queue. [Lease] is the right to run one job until a time.
//   - [Policy] says how long a failed job waits. [Strategy] is a policy that can be stored with a
//     job.
//   - [Event] reports what happened to a job, after it is durable.
//   - [Keyring] signs jobs and verifies their signatures.
//
// [Kind.Enqueue] encodes the arguments and gives an envelope to the queue, which stores it before
// it returns. A worker fetches a lease, runs the handler once, and settles the lease: Ack if the
// handler returned nil, Nack or Abandon if it failed, Release if it was interrupted, and Snooze if
// it asked to run again later.
//
// Delivery is at least once. A job runs again if its process died, if its lease expired, or if it
// was interrupted. So handlers must be idempotent.
//
// Package bolt is the queue in a bbolt file. Package worker runs handlers over any [Queue].
// Package dlq manages dead jobs. Package metrics has the counters of a queue. Package driver is
// for authors of queues. This package opens no file and starts no goroutine.
package pawl
