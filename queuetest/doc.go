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
//		}, &queuetest.Config{Restart: true})
//	}
//
// Each case names the rule of the contract that it guards, prints it when it fails,
// and has a queue of its own in a bubble of testing/synctest: time is virtual, and a
// goroutine that outlives its queue fails the case. Behind the cases stand random
// walks: some hundred random calls, stale leases and steps of time among them, each
// compared with a model of the contract that is short enough to be read.
//
// The verbs of [pawl.Queue] are checked for every implementation. What else a queue
// can do is found by its methods ([Inspector], [Retrier], [Canceller], [Pauser],
// [Deleter], io.Closer) or told by [Config]; cases that need more than that are
// skipped.
package queuetest
