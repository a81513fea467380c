// Package workflowtest helps test workflows. They run on a queue in a file and by a worker, as in
// the program, but the test moves the clock, replaces steps and places crashes.
//
//	func TestApproved(t *testing.T) {
//		k := workflowtest.New(t, nil, Order)
//		k.Stub("charge", func(context.Context) (any, error) { return "payment 7", nil })
//		k.CrashAfter("charge") // charged, but not yet recorded
//
//		run := workflowtest.Start(k, Order, "1042", Basket{Cents: 12900})
//		workflowtest.Send(run, Approved, true)
//		receipt, err := run.Result()
//		…
//	}
//
// [New] returns a [Kit]: a queue, an engine and a worker, closed when the test ends. [Start] and
// [Send] start runs and send signals; [Run] follows a run. The methods of Kit move the clock, stub
// steps, crash and deploy. [EachCrash] repeats a test with a crash at each point of it.
//
// # Time
//
// The queue's clock stands still at [Epoch] until Skip, Advance or Result move it. A sleep of a week
// takes no time, deadlines are exact, and journals are reproducible. Real time remains for the
// timeout of a step, a time.Sleep in a step, and waits that do not suspend a run: those of less
// than 100 ms, and those beside a branch that works.
//
// The package also works in a bubble of testing/synctest if [New] is called there. To let time.Sleep
// move the queue's clock too, set Options.Now to time.Now there.
//
// # Crashes
//
// A crash closes the queue while runs are executing: they can write nothing more, and their leases
// stay in the file until the next process takes them back, as after a kill. Then the kit opens the
// file again with a new engine, and the runs continue.
//
// A crash cannot end goroutines. The function of a run gets an error from its current call and all
// later calls, and returns. Effects outside of steps in that time do not happen in a real crash.
package workflowtest
