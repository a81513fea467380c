// Package pawltest is a kit for the tests of programs that enqueue or handle jobs.
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
// This is all of it:
//
//	New                  a queue in memory, closed when the test ends
//	Enqueued             the arguments of all jobs of a kind that were enqueued
//	RequireEnqueued      fails unless a job with these arguments was enqueued
//	RequireNothingElse   fails when there was one that the two above did not name
//	RunOne               runs one job and says what became of it
//	Drain                runs jobs until none is left, and skips their delays
//	Queue.Advance        moves the clock of the queue
//	Queue.Now            reads it
//	Outcome              what became of a job
//
// A [Queue] is a *memory.Queue with all its methods besides: Job, Jobs and Stats look
// at what is there, Cancel, Pause and Retry do what an operator would, and package dlq
// takes it.
//
// # Time
//
// There are two ways not to wait for time, and both are exact about delays, retries
// and deadlines.
//
// In an ordinary test the clock of the queue is moved. [Drain] does so by itself:
// whenever all that is left waits for its time, it sets the clock to when the first job
// is due. For single steps there is [Queue.Advance]:
//
//	got := pawltest.RunOne(t, q, w) // it fails: got.Type is pawl.EventRetried
//	q.Advance(got.Delay)
//	got = pawltest.RunOne(t, q, w)  // the second attempt
//
// Only the queue knows of that clock. A time that the test gives to a job must begin at
// [Queue.Now], as in pawl.At(q.Now().Add(time.Hour)). What runs on other clocks goes on
// as before: the timeout of a run, a time.Sleep in a handler, and leases, which never
// end by a wall clock.
//
// In a bubble of testing/synctest all time is virtual, that of the handlers and of
// leases too. There [time.Sleep] moves it, and nothing of this package is needed for
// that:
//
//	synctest.Test(t, func(t *testing.T) {
//		q := pawltest.New(t, nil)
//		go newWorker(q).Run(t.Context())
//		signUp(t.Context(), q, "ada@example.com")
//		time.Sleep(24 * time.Hour) // passes at once, with all that falls due in it
//		synctest.Wait()
//		pawltest.RequireEnqueued(t, q, SendReminder, Reminder{To: "ada@example.com"})
//	})
//
// Take the first for what happens to jobs one by one, the second where a worker runs
// beside the test, or where leases and timeouts matter. All of this package works in a
// bubble as it does outside, when [New] was called in there.
//
// # What it does not do
//
// It does not make workers: give [RunOne] and [Drain] the one that the program makes of
// a queue, so that its handlers, policies and middleware are tested too. It is not for
// a queue in a file; what a program does with its own transactions is tested with
// package bolt in a t.TempDir.
package pawltest
