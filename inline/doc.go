// Package inline is a queue whose Enqueue runs the job before it returns. It is for scripts, and
// for tests that want the effect of a job at once. Jobs run with the handlers, policies, and
// middleware of the program's workers:
//
//	q := inline.New(nil)
//	defer q.Close()
//	w := worker.New(q, nil) // Enqueue runs jobs with w from here on
//	worker.Handle(w, SendWelcome, sendWelcome)
//
//	_, err := SendWelcome.Enqueue(ctx, q, Welcome{To: "ada@example.com"}) // returns after sendWelcome
//
// A [Queue] is a [memory.Queue]. It keeps the whole contract of a queue in one process, and its jobs
// are gone when the process ends. It lacks the abilities [pawl.Synced] and [pawl.Shared], so
// [pawl.Require] refuses it for these. It has some rules of its own:
//
//   - Enqueue stores a job and then runs it. Retries follow without the delays between them, until
//     the job succeeds, becomes dead, or snoozes. The jobs of a batch run in their order.
//   - If a handler enqueues a job, the job runs before the handler's call of Enqueue returns.
//   - Enqueue returns nil even if a job becomes dead. Jobs lists the dead jobs with their errors,
//     and package dlq accepts the queue.
//   - Enqueue does not run a job that has a delay or snoozes, a job of a paused queue, or a job that
//     no worker takes, because none handles its kind or works on its queue. Such a job stays in the
//     queue. Run and Drain of the worker run it as with any queue, and Drain with
//     [pawl.WaitFinished] waits until its delay has passed. Enqueue logs a job that no worker takes.
//   - Workflows need a worker that runs beside, since their jobs are not enqueued by Enqueue.
//   - When the context of an Enqueue ends, the worker stops as it does in Run. Enqueue then returns
//     nil, and the interrupted job stays ready.
//   - Concurrent calls of Enqueue may run each other's jobs. Each call returns after its own jobs.
//     While a call runs jobs, Run and Drain fetch none.
//
// Package engine opens such a queue as "inline:" if the program imports this package.
//
// For tests that check each attempt of a job, or control the time, use package pawltest.
package inline
