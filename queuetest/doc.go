// Package queuetest checks that an implementation of [pawl.Queue] keeps its
// contract. An implementation calls [Run] from a test of its own:
//
//	func TestConformance(t *testing.T) {
//		queuetest.Run(t, func(t testing.TB, dir string, s queuetest.Settings) pawl.Queue {
//			q, err := mine.Open(filepath.Join(dir, "jobs"), mine.Options{Lease: s.Lease, …})
//			if err != nil {
//				t.Fatal(err)
//			}
//			return q
//		}, &queuetest.Config{Persists: true, Alone: true})
//	}
//
// Each case names the rule of the contract that it guards and prints it when it fails.
// It has its own queue in a bubble of testing/synctest: time is virtual, and a
// goroutine that outlives its queue fails the case. After the cases come random walks:
// several hundred random calls, with stale leases and steps of time among them. Each
// result is compared with a model of the contract that is short enough to read.
//
// Run checks the methods of [pawl.Queue] for every implementation. [Config] says what else holds for the queue,
// driver.Able declares its abilities, and Run leaves out the cases that do not apply. For each ability that is absent,
// a case requires its refusal. For a queue over a message broker, [Reduced] says which rules it keeps only in part,
// and the cases check that instead. A case skips itself if it needs another ability that is absent, or an optional
// method that is missing ([Inspector], [Retrier], [Canceller], [Pauser], [NowRunner], [Deleter], io.Closer).
package queuetest
