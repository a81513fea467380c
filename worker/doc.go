// Package worker runs handlers over any [pawl.Queue].
//
//	w := worker.New(q, &worker.Options{Concurrency: 16})
//	worker.Handle(w, SendWelcome, func(ctx context.Context, job *pawl.Job[Welcome]) error {
//		return send(ctx, job.Args.To)
//	})
//	err := w.Run(ctx) // until ctx ends
//
// # What a handler returns
//
//   - nil: the job is done.
//   - An error, or a panic: the attempt failed. The job is retried after the delay of its policy,
//     or becomes dead if no retry is left.
//   - [pawl.Permanent]: the job becomes dead immediately.
//   - [pawl.RetryAfter]: the attempt failed. The job is retried after this delay.
//   - [pawl.Snooze]: the job runs again later. No attempt is counted, and the count of earlier
//     failures restarts at 0.
//
// # When its context ends
//
// The context of a handler ends for one of these reasons, which [context.Cause] returns:
//
//   - [ErrTimeout], [ErrDeadline]: the attempt took too long, or the deadline of the job has
//     passed. An error is a failed attempt. Nil is a success.
//   - [ErrCancelled]: the job was cancelled. Nil is a success. After anything else the job is
//     dead.
//   - [ErrStopping]: the worker stops. An error returns the job to the queue and is not a failure.
//     Nil is a success, and [pawl.Permanent] and [pawl.Snooze] keep their meaning.
//   - [pawl.ErrLeaseLost]: the lease is over, and the job may run elsewhere. What the handler
//     returns has no effect.
//   - [ErrLeaseInDoubt]: the queue did not answer, so the lease may be over. If it is, what the
//     handler returns has no effect. Otherwise the rules of ErrStopping apply.
//
// A handler that does not return counts as stuck once [Options].StuckGrace has passed since its timeout or
// deadline, or Options.StopGrace since a stop ended its context. The worker then settles its job
// without it. The handler keeps its slot, which is its share of Options.Concurrency, until it
// returns, and its job does not run again in this worker before that. See [Worker.Stuck].
//
// # Acks
//
// A handler may ack its job in the transaction that stores its effect. It calls AckTx of the
// queue, such as that of package bolt, with job.Lease. After the commit the job is done, whatever
// the handler returns. If that is an error, the worker logs it.
//
// A slot is free as soon as the handler returns. The worker acks several jobs at a time, so a job
// that finished right before a crash may run again.
//
// # Around the handlers
//
// [Options].Middleware wraps every handler of a worker. With [Options].Verify, a job without a valid
// signature becomes dead before its payload is decoded. A job of a kind that has no handler here
// stays ready for a worker that has one. A job whose kind has [pawl.Needs] stays ready until the
// [Gate] of each need is open.
//
// The code follows a job: fetch.go leases it, slots.go gives it a slot, attempt.go runs the
// handler, decide.go decides what its result means, and settle.go settles the lease. A heartbeat
// extends all leases in one call. The package stores nothing itself.
package worker
