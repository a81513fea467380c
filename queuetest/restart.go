package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

var restartTests = []test{
	newTest("keeps everything", "After a restart, every stored job is there unchanged.", func(f *fixture) {
		f.needRestart()
		for _, state := range []pawl.State{pawl.Dead, pawl.Delayed, pawl.Ready} {
			policy := pawl.Exponential(time.Second, 3).FullJitter()
			f.held(state, on("q"), func(e *pawl.Envelope) {
				e.Payload, e.Headers = make([]byte, 3000), map[string]string{"h": "v"}
				e.Priority, e.Timeout, e.MaxRetries, e.Policy = -5, time.Minute, 7, &policy
			})
		}
		f.nack(f.lease("q"), 0)
		unchanged := f.unchanged()
		f.restart()
		unchanged("after the restart")
	}),
	newTest("takes back every lease at once",
		"Every lease that open finds is an orphan. Its job is ready at once, in its old place, with one crash more and the "+
			"same attempts.", func(f *fixture) {
			f.needRestart()
			f.addKinds("a", "b", "c")
			leases := f.leases(2)
			f.pass(time.Second)
			want := []*pawl.Envelope{f.must(leases[0].ID), f.must(leases[1].ID)}
			f.restart()
			for _, e := range want {
				e.State, e.LeasedSince = pawl.Ready, time.Time{}
				e.Crashes++
				f.same(f.must(e.ID), e, "the job")
			}
			f.add(of("d"))
			equal(f, kinds(f.fetch(9)), "abcd", "order")
		}),
	newTest("at the crash cap", "A lease that open finds counts as a crash, also towards the limit of crashes.", func(f *fixture) {
		f.needRestart()
		id := f.add().ID
		for range 4 {
			f.lease()
			f.restart()
		}
		equal(f, f.must(id).Crashes, 4, "crashes")
		f.pass(time.Second)
		f.lease()
		f.restart()
		e := f.must(id)
		equal(f, e.State, pawl.Dead, "state")
		equal(f, e.Death.Reason, pawl.ReasonPoison, "reason")
		f.sameTime(e.Death.At, time.Now(), "time of death")
		equal(f, e.Attempts, 0, "attempts")
	}),
	newTest("counts no crash twice",
		"A restart counts a crash for each lease that it finds, and for no job that was ready, settled, or reaped before.", func(f *fixture) {
			f.needRestart()
			f.addKinds("expired", "nacked", "never leased")
			leases := f.leases(2)
			f.nack(leases[1], 0)
			f.expire(leases[0])
			for range 3 {
				f.restart()
			}
			for kind, crashes := range map[string]int{"expired": 1, "nacked": 0, "never leased": 0} {
				equal(f, f.list(pawl.Filter{Kind: kind})[0].Crashes, crashes, "crashes of the job that was "+kind)
			}
		}),
	newTest("jobs that fell due meanwhile",
		"A job that became due while the queue was closed is ready at open, since it was due.", func(f *fixture) {
			f.needRestart()
			start := time.Now()
			f.add(of("b"), after(2*time.Hour))
			f.add(of("a"), after(time.Hour))
			f.add(of("c"), after(4*time.Hour))
			f.close()
			f.pass(3 * time.Hour)
			f.reopen()
			leases := f.leases(2)
			equal(f, kinds(leases), "ab", "order")
			f.sameTime(leases[0].NotBefore, start.Add(time.Hour), "since when it is ready")
			equal(f, f.list(pawl.Filter{Kind: "c"})[0].State, pawl.Delayed, "state of the one that is not due")
			f.pass(time.Hour)
			equal(f, f.list(pawl.Filter{Kind: "c"})[0].State, pawl.Ready, "its state at its time")
		}),
	newTest("sequence goes on", "The enqueue sequence grows over restarts, so that old jobs come before new ones.", func(f *fixture) {
		f.needRestart()
		for _, kind := range []string{"a", "b", "c"} {
			last := f.add(of(kind)).Seq
			f.restart()
			if next := f.add(of(kind)).Seq; next <= last {
				f.Fatalf("after the restart came sequence %d, before it %d", next, last)
			}
		}
		equal(f, kinds(f.fetch(9)), "aabbcc", "order")
	}),
	newTest("suspects",
		"The crash counts survive a restart: a suspect is leased only into an idle slot, and a repeat suspect only alone.", func(f *fixture) {
			f.needRestart()
			f.addKinds("a", "b")
			for range 2 {
				equal(f, len(f.fetch(9)), 2, "jobs that crash")
				f.restart()
			}
			f.add(of("x"))
			equal(f, kinds(f.request(pawl.Request{Max: 9, Ahead: 9})), "x", "jobs without an idle slot")
			equal(f, kinds(f.fetch(9)), "a", "jobs")
			equal(f, len(f.fetch(9)), 0, "more jobs")
		}),
	newTest("an ID is taken", "The queue knows the IDs of its jobs after a restart.", func(f *fixture) {
		f.needRestart()
		id := f.add().ID
		f.restart()
		f.is(f.q.Enqueue(f.Context(), &pawl.Envelope{ID: id, Kind: "k"}), pawl.ErrConflict, "enqueue")
	}),
	newTest("a job that is done", "An ack is durable when it returns: the job does not come back.", func(f *fixture) {
		f.needRestart()
		f.add()
		f.ack(f.lease())
		f.restart()
		equal(f, len(f.fetch(9)), 0, "jobs to fetch")
		equal(f, len(f.list(pawl.Filter{})), 0, "jobs")
	}),
	newTest("history", "The history survives a restart and continues.", func(f *fixture) {
		f.needRestart()
		id := f.add().ID
		f.nack(f.lease(), 0)
		f.restart()
		f.abandon(f.lease())
		f.restart()
		e := f.must(id)
		equal(f, len(e.History), 2, "entries in the history")
		equal(f, e.History[1].Attempt, 2, "attempt of the last")
		f.retry(id, false)
		f.restart()
		equal(f, f.must(id).Failures, 2, "failures")
		equal(f, f.lease().Attempt(), 1, "the current attempt")
	}),
}
