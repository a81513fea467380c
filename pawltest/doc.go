// Package pawltest helps test programs that enqueue or handle jobs.
//
//	func TestSignup(t *testing.T) {
//		q := pawltest.New(t, nil)
//		signUp(t.Context(), q, "ada@example.com") // the program under test
//
//		job := pawltest.RequireEnqueued(t, q, SendWelcome, Welcome{To: "ada@example.com"})
//		if job.Queue != "mail" {
//			t.Errorf("the welcome is on queue %s", job.Queue)
//		}
//		pawltest.RequireNothingElse(t, q)
//
//		got := pawltest.RunOne(t, q, newWorker(q)) // the worker of the program
//		if got.Type != pawl.EventSucceeded {
//			t.Errorf("%v", got)
//		}
//	}
//
// [New] returns a [Queue] in memory. [Enqueued], [RequireEnqueued] and [RequireNothingElse] inspect
// what was enqueued. [RunOne] and [Drain] run jobs and return an [Outcome] for each. A Queue embeds
// *memory.Queue: Job, Jobs and Stats read it, Cancel, Pause and Retry act as an operator would, and
// package dlq accepts it.
//
// # Time
//
// Tests need not wait. There are two ways; both are exact about delays, retries and deadlines.
//
// In an ordinary test, the queue has its own clock, which the test moves. Whenever all jobs that are left
// wait for a time, such as that of a retry or of a [pawl.Rate], [Drain] moves it to the first of these
// times. [Queue.Advance] moves it step by step:
//
//	got := pawltest.RunOne(t, q, w) // it fails: got.Type is pawl.EventRetried
//	q.Advance(got.Delay)
//	got = pawltest.RunOne(t, q, w)  // the second attempt
//
// Only the queue uses that clock. Times that the test gives to a job must be relative to
// [Queue.Now], as in pawl.At(q.Now().Add(time.Hour)). The timeout of an attempt and a time.Sleep in a
// handler use real time. Leases never expire by the queue's clock. A scheduler of package schedule uses it,
// but fires in a goroutine of its own, at some moment after Advance has returned. Test schedules in a bubble.
//
// In a bubble of testing/synctest all time is virtual, including that of handlers and leases, and
// time.Sleep moves it:
//
//	synctest.Test(t, func(t *testing.T) {
//		q := pawltest.New(t, nil)
//		go newWorker(q).Run(t.Context())
//		signUp(t.Context(), q, "ada@example.com")
//		time.Sleep(24 * time.Hour) // returns at once, after everything due in it
//		synctest.Wait()
//		pawltest.RequireEnqueued(t, q, SendReminder, Reminder{To: "ada@example.com"})
//	})
//
// Use the first way to follow single jobs, and the second to run a worker beside the test or to
// test leases and timeouts. The whole package works in a bubble if [New] is called there.
//
// # Limits
//
// The package creates no workers. Pass the worker of the program to [RunOne] and [Drain], so that
// its handlers, policies and middleware are tested too. To test transactions with a file, use
// package bolt in a t.TempDir.
package pawltest
