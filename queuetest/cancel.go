package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// cancelsWaiting cancels a job that is not leased and failed once.
func cancelsWaiting(state pawl.State) test {
	return newTest("a job that is "+string(state),
		"Cancel of a job that is not leased makes it dead with the reason cancelled. Nothing runs, and nothing else "+
			"changes.", func(f *fixture) {
			f.canceller() // or skip
			e := f.add(priority(3), func(e *pawl.Envelope) { e.Payload = make([]byte, 3000) })
			f.nack(f.lease(), 0)
			switch l := f.lease(); state {
			case pawl.Ready:
				f.release(l)
			case pawl.Delayed:
				f.snooze(l, time.Hour)
			}
			f.pass(time.Second)
			want := f.must(e.ID)
			equal(f, want.State, state, "state")
			f.cancel(e.ID)
			want.State, want.Death = pawl.Dead, &pawl.Death{Reason: pawl.ReasonCancelled, At: time.Now()}
			f.same(f.must(e.ID), want, "the job")
			f.pass(2 * time.Hour)
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			f.same(f.must(e.ID), want, "the job, later")
			f.retry(e.ID, false)
			l := f.lease()
			equal(f, l.Cancelled.Fired(), false, "the signal of a lease after the retry fired")
			f.nack(l, 0)
			equal(f, f.must(e.ID).State, pawl.Ready, "state after a retry and a failure")
		})
}

func cancelTests() (tests []test) {
	for _, state := range []pawl.State{pawl.Ready, pawl.Delayed} {
		tests = append(tests, cancelsWaiting(state))
	}
	for _, state := range []pawl.State{pawl.Dead, pawl.Completed} {
		tests = append(tests, cancelling.wrongState("a job that is ",
			"Cancel of a dead or completed job returns ErrConflict and changes nothing.", state))
	}
	for _, end := range endings {
		tests = append(tests, endsCancelled(end).needing(end.needs))
	}
	const flag = "Cancel of a leased job sets its flag and fires the signal of its lease. The handler keeps running until " +
		"its holder settles the lease."
	tests = append(tests,
		newTest("a job that is leased", flag, func(f *fixture) {
			l, want := f.seasoned()
			equal(f, l.Cancelled.Fired(), false, "the signal fired before the cancel")
			for range 2 {
				f.cancel(l.ID)
				want.Cancelled = true
				f.same(f.must(l.ID), want, "the job")
				f.pass(time.Second)
				equal(f, l.Cancelled.Fired(), true, "the signal fired")
			}
			f.pass(l.Length - 4*time.Second)
			equal(f, len(f.extend(l)), 0, "leases lost")
			f.pass(l.Length - 1)
			f.same(f.must(l.ID), want, "the job, later")
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			f.ack(l)
			equal(f, f.job(l.ID) == nil, true, "the job is gone")
		}),
		newTest("a holder that gets the signal", "The signal calls its function once, when the flag is durable.", func(f *fixture) {
			id := f.add().ID
			l := f.lease()
			calls := make(chan bool, 9)
			l.Cancelled.OnFire(func() { calls <- true })
			f.cancel(id)
			f.cancel(id)
			f.pass(0)
			equal(f, len(calls), 1, "calls")
			equal(f, f.must(id).Cancelled, true, "Cancelled")
			l.Cancelled.OnFire(func() { calls <- true })
			equal(f, len(calls), 2, "calls of a function that was added late")
		}),
		newTest("leased, and ack",
			"An ack of a cancelled job succeeds as usual: the job is removed or retained, and its key is done.", func(f *fixture) {
				id := f.add(effect("x")).ID
				l := f.lease()
				f.cancel(id)
				f.ack(l)
				equal(f, f.job(id) == nil, true, "the job is gone")
				f.skips(f.add(effect("x")).ID, "after the success")
				id = f.add(kept(time.Hour)).ID
				l = f.lease()
				f.cancel(id)
				f.ack(l)
				equal(f, f.must(id).State, pawl.Completed, "state")
				equal(f, f.must(id).Attempts, 1, "attempts")
			}),
		newTest("signals of other leases", "A cancel fires the signal of the lease that holds the job, and no other signal.", func(f *fixture) {
			f.addKinds("a", "b")
			leases := f.leases(2)
			f.release(leases[0])
			again := f.lease()
			f.cancel(again.ID)
			f.pass(0)
			equal(f, again.Cancelled.Fired(), true, "the signal of the lease fired")
			equal(f, leases[1].Cancelled.Fired(), false, "the signal of another job's lease fired")
			equal(f, leases[0].Cancelled.Fired(), false, "the signal of an earlier lease fired")
			f.release(leases[1])
			f.cancel(leases[1].ID)
			f.pass(0)
			equal(f, leases[1].Cancelled.Fired(), false, "the signal of a lease that had ended fired")
		}),
		newTest("signals and time", "The end of a lease never fires its signal.", func(f *fixture) {
			f.canceller() // or skip
			for _, v := range verbs {
				f.fresh(Settings{})
				f.add()
				l := f.lease()
				f.end(v, l)
				f.pass(time.Hour)
				equal(f, l.Cancelled.Fired(), false, "the signal fired after "+v.name)
			}
		}),
	)
	return append(tests, moreCancelTests()...)
}
