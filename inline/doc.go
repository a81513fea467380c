// Package inline is a queue whose Enqueue runs the job before it returns. It is for scripts, and
// for tests that want the effect of a job at once. The handlers, policies, and middleware are those
// of the workers of the program:
//
//	q := inline.New(nil)
//	defer q.Close()
//	w := worker.New(q, nil) // q learns of w here
//	worker.Handle(w, SendWelcome, sendWelcome)
//
//	_, err := SendWelcome.Enqueue(ctx, q, Welcome{To: "ada@example.com"}) // returns after sendWelcome
//
// A [Queue] is a [memory.Queue], so it has the whole contract of a queue in one process, and loses
// its jobs with the process. It lacks [pawl.Synced] and [pawl.Shared], and [pawl.Require] says so.
// These rules are its own:
//
//   - Enqueue runs a job once it is stored, and its retries without the delays between them, until
//     the job succeeds, dies, or snoozes. It runs the jobs of a batch in their order.
//   - A handler that enqueues a job runs it before its own Enqueue returns.
//   - Enqueue returns nil when a job dies. Jobs lists the dead jobs with their errors, and package
//     dlq accepts the queue.
//   - A job stays where it is if it has a delay or snoozes, if its queue is paused, or if no worker
//     takes it: none handles its kind or works on its queue. Run and Drain of the worker run it as
//     with any queue, and Drain with [pawl.WaitFinished] waits for its time. Enqueue logs a job that
//     no worker takes.
//   - When the context of an Enqueue ends, the worker stops as it does in Run. Enqueue then returns
//     nil, and the job that was interrupted stays ready.
//   - Calls of Enqueue that overlap may run the jobs of each other. Each returns after its own. While
//     one runs jobs, Run and Drain fetch none.
//
// Package engine opens such a queue as "inline:" if the program imports this package.
//
// Package pawltest is for tests that follow a job from attempt to attempt, or move the time.
package inline
