package queuetest

import (
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

var restartTests = []test{
	restartTest("keeps everything", "After a restart, every stored job is there unchanged.", func(f *fixture) {
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
	aloneTest("takes back every lease at once",
		"Every lease that open finds is an orphan. Its job is ready at once, in its old place, with one crash more and the "+
			"same attempts.", func(f *fixture) {
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
	aloneTest("at the crash cap", "A lease that open finds counts as a crash, also towards the limit of crashes.", func(f *fixture) {
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
	restartTest("counts no crash twice",
		"A restart counts a crash for each lease that it finds, and for no job that was ready, settled, or reaped before.", func(f *fixture) {
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
	restartTest("jobs that fell due meanwhile",
		"A job that became due while the queue was closed is ready at open, since it was due.", func(f *fixture) {
			start := time.Now()
			f.add(of("b"), after(2*time.Hour))
			f.add(of("a"), after(time.Hour))
			f.add(of("c"), after(4*time.Hour))
			f.close()
			f.pass(3 * time.Hour)
			f.reopen()
			f.due(0)
			leases := f.leases(2)
			f.comeAs(leases, "ab", "jobs")
			f.sameTime(leases[strings.Index(kinds(leases), "a")].NotBefore, start.Add(time.Hour), "since when it is ready")
			equal(f, f.list(pawl.Filter{Kind: "c"})[0].State, pawl.Delayed, "state of the one that is not due")
			f.pass(time.Hour)
			equal(f, f.list(pawl.Filter{Kind: "c"})[0].State, pawl.Ready, "its state at its time")
		}),
	restartTest("sequence goes on", "The enqueue sequence grows over restarts, so that old jobs come before new ones.", func(f *fixture) {
		for _, kind := range []string{"a", "b", "c"} {
			last := f.must(f.add(of(kind)).ID).Seq
			f.restart()
			if next := f.must(f.add(of(kind)).ID).Seq; next <= last {
				f.Fatalf("after the restart came sequence %d, before it %d", next, last)
			}
		}
		equal(f, kinds(f.fetch(9)), "aabbcc", "order")
	}),
	aloneTest("suspects",
		"The crash counts survive a restart: a suspect is leased only into an idle slot, and a repeat suspect only alone.", func(f *fixture) {
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
	restartTest("an ID is taken", "The queue knows the IDs of its jobs after a restart.", func(f *fixture) {
		id := f.add().ID
		f.restart()
		f.is(f.try(&pawl.Envelope{ID: id, Kind: "k"}), pawl.ErrConflict, "enqueue")
	}).needing(knowingIDs),
	restartTest("a job that is done", "An ack is durable when it returns: the job does not come back.", func(f *fixture) {
		f.add()
		f.ack(f.lease())
		f.restart()
		equal(f, len(f.fetch(9)), 0, "jobs to fetch")
		equal(f, len(f.list(pawl.Filter{})), 0, "jobs")
	}),
	restartTest("history", "The history survives a restart and continues.", func(f *fixture) {
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

// togetherTests are what becomes of leases when the client that holds them goes away and others
// may be there.
var togetherTests = []test{
	newTest("a lease outlasts its client",
		"Where the opener need not be alone, open takes back no lease. The lease holds until it expires, its token "+
			"settles, and no crash is counted.", func(f *fixture) {
			f.addKinds("a", "b")
			leases := f.leases(2)
			want := f.must(leases[0].ID)
			f.restart()
			f.same(f.must(leases[0].ID), want, "the leased job")
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			f.ack(leases[0])
			equal(f, f.job(leases[0].ID) == nil, true, "the job that was acked is gone")
			equal(f, len(f.extend(leases[1])), 0, "leases lost")
		}).needing(together),
	newTest("a lease expires after its client",
		"A lease whose client went away is taken back when it expires, with one crash more.", func(f *fixture) {
			f.add()
			l := f.lease()
			f.close()
			f.pass(l.Length / 2)
			f.reopen()
			f.until(l.Expires)
			equal(f, len(f.fetch(9)), 0, "jobs to fetch before the expiry")
			f.pass(time.Until(l.Expires) + f.config.Reduced.Orphans)
			equal(f, f.must(l.ID).Crashes, 1, "crashes")
			f.is(f.q.Settle(f.Context(), l.Ack()), pawl.ErrLeaseLost, "an ack that comes too late")
			equal(f, f.lease().ID, l.ID, "job")
		}).needing(together),
}
