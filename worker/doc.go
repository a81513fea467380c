// Package worker runs handlers over any [pawl.Queue].
//
//	w := worker.New(q, &worker.Options{Concurrency: 16})
//	worker.Handle(w, SendWelcome, func(ctx context.Context, job *pawl.Job[Welcome]) error {
//		return send(ctx, job.Args.To)
//	})
//	err := w.Run(ctx) // until ctx ends
//
// A job moves through five steps, a file each: the session fetches its lease
// (session.go), it gets a slot (slots.go), an attempt runs the handler once
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
//   - [pawl.Snooze]: the job comes back later and no attempt is counted
//
// Its context ends at the timeout, when the lease is lost, and when the worker
// stops; a job whose handler fails after the worker told it to stop is released,
// not failed. A slot is free as soon as the handler has returned: the
// acknowledgement travels on its own, so a job that finished right before a crash
// may run again.
//
// The package keeps no state on disk and decides no order: both are the queue's.
package worker
