// Package workflow runs durable functions: ordinary Go whose finished steps are remembered,
// so that after a crash, a deploy or a week of sleep it goes on where it was. Everything lies
// in the store of a queue, such as the file of package bolt, and the worker that runs jobs runs
// them.
//
//	var Order = workflow.Define("order", func(r *workflow.Run, b Basket) (Receipt, error) {
//		payment, err := workflow.Step(r, "charge", func(ctx context.Context) (string, error) { … })
//		if err != nil {
//			return Receipt{}, err
//		}
//		err = workflow.Sleep(r, "cool down", 24*time.Hour)
//		…
//	})
//
//	e := workflow.Open(q, nil)
//	err := e.Handle(ctx, w, Order) // w runs them
//	h, err := Order.Start(ctx, e, "2026/1042", basket)
//
// The nouns:
//
//   - A [Flow] is such a function with a name; a run is one execution of it, with an ID that
//     its starter gave it, and a [Handle] refers to one.
//   - A [Run] is what the function makes its calls by: [Step], [StepTx], [Sleep], [Signal.Wait],
//     [Call], [Go], [Race], [Version] and the others. The function runs again from the top
//     whenever the run goes on, and finished calls return what the journal has of them.
//   - The journal is the calls that a run has made; an [Entry] is one of them. A call is known
//     by its name, and by how often that name came before. Calls must come again in the order
//     in which the journal has them: otherwise the run is blocked, with a [DeterminismError],
//     until a build that fits opens the file.
//   - An [Engine] runs flows over a queue and changes runs; a [Reader] looks at them, in a
//     queue or in the file of an app that is stopped.
//
// A run is a job of the queue: its retries, its lease, its crashes, its place among the dead
// letters are that job's. What waits, holds no goroutine and no slot of a worker: the run is
// suspended, its job delayed, and [ErrSuspended] is what every call returns. So return errors
// that are not a step's own.
//
// Promises, limits, and how to change code while runs are under way: docs/guide/workflows.md.
package workflow
