// Package worker runs handlers over any [pawl.Queue].
//
//	w := worker.New(q, &worker.Options{Concurrency: 16})
//	worker.Handle(w, SendWelcome, func(ctx context.Context, job *pawl.Job[Welcome]) error {
//		return send(ctx, job.Args.To)
//	})
//	err := w.Run(ctx) // until ctx ends
//
// A job moves through five steps, a file each: the session fetches its lease
// (fetch.go), it gets a slot (slots.go), an attempt runs the handler once
// (attempt.go), decide says what its result means (decide.go), and settle tells the
// queue (settle.go). Beside them the heartbeat extends every held lease in one call.
//
// # What a handler may return
//
//   - nil: the job is done
//   - an error, or a panic: the attempt failed; the job is retried after the delay
//     of its policy, or goes to the dead letters when no retry is left
//   - [pawl.Permanent]: the dead letters at once
//   - [pawl.RetryAfter]: a retry with this delay
//   - [pawl.Snooze]: the job comes back later, no attempt is counted, and its earlier
//     failures no longer count towards its retries
//
// Its context ends for one of these reasons, which [context.Cause] tells:
//
//   - [ErrTimeout], [ErrDeadline]: the run took too long, or the job's life is over.
//     An error is a failed attempt, nil is still a success.
//   - [ErrCancelled]: somebody cancelled the job. Nil is still a success; after
//     anything else the job is dead.
//   - [ErrStopping]: the worker stops. An error releases the job and is no failure;
//     [pawl.Permanent] and [pawl.Snooze] mean what they say.
//   - [pawl.ErrLeaseLost]: the job is somebody else's now, and whatever the handler
//     returns is dropped.
//   - [ErrLeaseInDoubt]: the queue did not answer, so the job may be somebody else's. An
//     error releases the job and is no failure; [pawl.Permanent] and [pawl.Snooze] mean
//     what they say, and nil is still a success. None of them changes anything if the
//     lease is lost.
//
// A handler that does not return after its timeout, the deadline or a stop is given up
// after a while, and is stuck until it does: its slot stays taken, and its job does not
// run beside it in this worker. See [Options].StuckGrace and [Worker.Stuck].
//
// A handler that keeps its data in the queue's own file may ack its job in the
// transaction that has its effect, by the AckTx of such a queue and job.Lease. When
// that transaction has committed the job is done: what the handler returns decides
// nothing any more, and an error is logged.
//
// A slot is free as soon as the handler has returned: the acknowledgement travels on
// its own, so a job that finished right before a crash may run again.
//
// # Around the handlers
//
// [Options].Middleware wraps every handler of a worker. [Options].Verify refuses jobs
// without a valid signature, before their payload is decoded. A job of a kind that has
// no handler here stays ready for a worker that has one.
//
// The package keeps no state on disk and decides no order: both are the queue's.
package worker
