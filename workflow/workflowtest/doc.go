// Package workflowtest is a kit for the tests of workflows. They run as they do in the
// program, on a queue in a file and by a worker, but on a clock that the test moves, with
// steps that the test replaces, and through crashes that the test places.
//
//	func TestApproved(t *testing.T) {
//		k := workflowtest.New(t, nil, Order)
//		k.Stub("charge", func(context.Context) (any, error) { return "payment 7", nil })
//		k.CrashAfter("charge") // it was charged, and nobody has written it down
//
//		run := workflowtest.Start(k, Order, "1042", Basket{Cents: 12900})
//		workflowtest.Send(run, Approved, true)
//		receipt, err := run.Result()
//		…
//	}
//
// This is all of it:
//
//	New            a queue, an engine and a worker, closed when the test ends
//	Start          starts a run, and lets it run until it waits or has ended
//	Send           sends it a signal, and lets it run on
//	Run.Result     moves the clock from one deadline to the next until the run has ended
//	Run.Info       where it stands
//	Run.Journal    the calls that it has made, as data and as text
//	Kit.Settle     has all runs run until they wait or have ended
//	Kit.Skip       moves the clock to the next deadline of any run, and settles
//	Kit.Advance    moves the clock by a duration, with all deadlines in it, and settles
//	Kit.Stub       replaces the function of a step
//	Kit.Attempts   how often a step was tried
//	Kit.Crash      crashes now, while all runs wait
//	Kit.CrashBefore, Kit.CrashAfter   crash at a step
//	Kit.Deploy     reopens with another build, and other flows
//	EachCrash      repeats a test with a crash at each point of it
//	Kit.Engine, Kit.Queue, Kit.Now    for everything else: cancel, pause, fork, verify
//
// # Time
//
// The clock of the queue stands still, at [Epoch], until Skip, Advance or Result move it. So
// a sleep of a week is over at once, deadlines are exact, and journals are the same each
// time. What runs on other clocks goes on as before: the timeout of a step, a time.Sleep in
// one, and waits of less than 100 ms, for which a run is not suspended.
//
// All of it works in a bubble of testing/synctest as it does outside, when [New] was called
// in there. To have time.Sleep move the clock of the queue too, which nobody needs, set
// Options.Now to time.Now in there.
//
// # Crashes
//
// At a crash the queue is closed under the runs: nothing of them is written any more, their
// leases stay in the file, and the next one to open it takes them back, as after a kill.
// Then the file is opened again, with a new engine, and the runs go on.
//
// What a crash does not end are goroutines: the function of a run gets an error from its
// call, and from all that come after, and returns. What it does outside of steps then is
// what no process would have done.
package workflowtest
