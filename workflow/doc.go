// Package workflow runs durable functions: ordinary Go functions whose completed steps are stored.
// After a crash, a deploy, or a week of sleep they continue where they stopped. Everything is in
// the store of a queue, such as the file of package bolt, and the worker that runs jobs also runs
// the functions.
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
// The terms:
//
//   - A [Flow] is such a function with a name. A run is one execution of it, with an ID given by
//     its starter, and a [Handle] refers to a run.
//   - A [Run] is what the function uses to make its calls: [Step], [StepTx], [Sleep],
//     [Signal.Wait], [Select], [Call], [Go], [Race], [Version] and others. The function runs again from the
//     top whenever the run continues, and completed calls return their results from the journal.
//   - The journal is the calls that a run has made. An [Entry] is one call, identified by its name
//     and by how often that name came before. The function must repeat its calls in the order of
//     the journal. Otherwise the run is blocked, with a [DeterminismError], until a matching
//     build opens the file.
//   - An [Engine] runs flows over a queue and changes runs. A [Reader] reads runs, in a queue or
//     in the file of a stopped app.
//
// A run is a job of the queue: its retries, lease, crashes, and death are those of the job. A
// waiting run holds no worker slot: it is suspended, and its job is delayed. The runs that were
// suspended last stay in memory and continue where they wait; see Options.Warm. When any other run
// waits, its calls return [ErrSuspended]. So return every error that is not that of a step.
//
// For promises, limits, and how to change code while runs are active, see
// docs/guide/workflows.md.
package workflow
