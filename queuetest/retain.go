package queuetest

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// completedBy acks a job with a retention and returns its ID.
func (f *fixture) completedBy(keep time.Duration, change ...func(*pawl.Envelope)) pawl.ID {
	f.Helper()
	e := f.add(append([]func(*pawl.Envelope){kept(keep)}, change...)...)
	f.ack(f.lease(e.Queue))
	return e.ID
}

func retainTests() (tests []test) {
	for _, v := range verbs {
		tests = append(tests,
			newTest("out of reach of "+v.name, "A completed job is settled: its lease is lost, and no settlement changes "+
				"it.", func(f *fixture) {
				f.add(kept(time.Hour))
				l := f.lease()
				f.ack(l)
				unchanged := f.unchanged()
				f.is(v.end(f.Context(), f.q, l), pawl.ErrLeaseLost, v.name)
				equal(f, len(f.extend(l)), 1, "leases lost")
				unchanged("after the refusal")
			}),
		)
	}
	return append(tests, []test{
		newTest("what is stored",
			"Ack of a job with a retention makes it completed, with one attempt more and the time of completion. Nothing "+
				"else changes.", func(f *fixture) {
				policy := pawl.Fixed(time.Second)
				id := f.add(kept(time.Hour), effect("e"), unique("u"), priority(-5), header("h", "v"), func(e *pawl.Envelope) {
					e.Policy, e.Timeout, e.Payload = &policy, time.Minute, make([]byte, 3000)
				}).ID
				f.pass(time.Second)
				f.nack(f.lease(), 0)
				f.pass(time.Second)
				f.expire(f.lease())
				want := f.must(id)
				l := f.lease()
				f.pass(time.Second)
				f.ack(l)
				want.State, want.Attempts, want.Crashes, want.Completed = pawl.Completed, 2, 0, time.Now()
				want.BackoffSince = time.Time{}
				f.same(f.must(id), want, "the completed job")
				f.same(f.list(pawl.Filter{State: pawl.Completed})[0], want, "the completed job in a list")
			}),
		newTest("stays completed", "No fetch, reap, or passing of time makes a completed job ready again.", func(f *fixture) {
			id := f.completedBy(1000 * time.Hour)
			f.pass(900 * time.Hour)
			f.reap()
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			equal(f, f.must(id).State, pawl.Completed, "state")
		}),
		newTest("how long", "A completed job is kept for its retention from the success on. Then the queue removes it by "+
			"itself.", func(f *fixture) {
			for _, keep := range []time.Duration{1, time.Second, 90 * time.Minute, 31 * 24 * time.Hour} {
				id := f.add(kept(keep)).ID
				f.pass(time.Minute)
				f.ack(f.lease())
				f.pass(keep - 1)
				if keep > 1 {
					equal(f, f.must(id).State, pawl.Completed, "state just before its end")
				}
				f.pass(1)
				equal(f, f.job(id) == nil, true, "the completed job is gone")
				equal(f, len(f.list(pawl.Filter{})), 0, "jobs")
			}
		}),
		newTest("counts", "Completed jobs are counted as completed until they are removed.", func(f *fixture) {
			f.completedBy(time.Minute)
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Completed: 1}, "an ack")
			f.pass(time.Second)
			f.completedBy(time.Minute)
			f.held(pawl.Ready)
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Completed: 2, Ready: 1}, "another")
			f.pass(59 * time.Second)
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Completed: 1, Ready: 1}, "the end of one")
			f.pass(time.Second)
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 1}, "the end of both")
		}),
		newTest("order", "Completed jobs are listed in the order in which they will be removed.", func(f *fixture) {
			for i, keep := range []time.Duration{5, 1, 4, 2, 3} {
				f.completedBy(keep*time.Hour, of(string(rune('a'+i))), onQueue([]string{"x", "y"}[i%2]))
				f.pass(time.Second)
			}
			equal(f, kindsOf(f.list(pawl.Filter{State: pawl.Completed})), "bdeca", "records")
			equal(f, kindsOf(f.list(pawl.Filter{State: pawl.Completed, Queue: "x"})), "eca", "completed jobs of a queue")
			equal(f, kindsOf(f.list(pawl.Filter{State: pawl.Completed, Kind: "d"})), "d", "completed jobs of a kind")
			f.pass(150 * time.Minute)
			equal(f, kindsOf(f.list(pawl.Filter{State: pawl.Completed})), "eca", "completed jobs later")
		}),
		newTest("its ID", "The ID of a completed job is taken until the job is removed, and free afterwards.", func(f *fixture) {
			id := f.completedBy(time.Minute)
			f.is(f.try(&pawl.Envelope{ID: id, Kind: "k"}), pawl.ErrConflict, "enqueue while it is kept")
			f.pass(time.Minute)
			f.add(func(e *pawl.Envelope) { e.ID = id })
			e := f.must(id)
			equal(f, e.State, pawl.Ready, "state")
			equal(f, e.Attempts, 0, "attempts")
		}),
		newTest("its unique key",
			"A completed job keeps its unique key until it is removed. It blocks jobs whose UniqueIn names Completed.", func(f *fixture) {
				key := unique("u", pawl.Completed)
				id := f.completedBy(time.Minute, key)
				again := func() pawl.Enqueued { return f.enqueue(newcomer("again", key))[0] }
				equal(f, again(), pawl.Enqueued{ID: id, Existing: true}, "what is returned")
				f.pass(time.Minute)
				equal(f, again().Existing, false, "another is there once the completed job is gone")
			}),
		newTest("a waiting drain", "No fetch waits for a completed job.", func(f *fixture) {
			f.completedBy(time.Hour)
			for _, wait := range []pawl.Wait{pawl.WaitNot, pawl.WaitDrained, pawl.WaitFinished} {
				_, call := f.fetching(f.Context(), pawl.Request{Max: 1, Wait: wait})
				f.ends(call, pawl.ErrEmpty, waits[wait])
			}
		}),
		newTest("no retry and no cancel", "A completed job can be neither retried nor cancelled: both return ErrConflict.", func(f *fixture) {
			id := f.completedBy(time.Hour)
			unchanged := f.unchanged()
			f.is(f.retrier().Retry(f.Context(), id, false), pawl.ErrConflict, "retry")
			f.is(f.canceller().Cancel(f.Context(), id), pawl.ErrConflict, "cancel")
			unchanged("after the refusals")
		}),
		newTest("a deadline that passes", "A deadline does not change a completed job.", func(f *fixture) {
			id := f.completedBy(time.Hour, within(time.Minute))
			f.pass(2 * time.Minute)
			equal(f, f.must(id).State, pawl.Completed, "state after the deadline")
			f.pass(time.Hour)
			equal(f, f.job(id) == nil, true, "the completed job is gone")
		}),
		newTest("a success only", "Retention keeps successes only. A dead job stays until someone removes it.", func(f *fixture) {
			id := f.add(kept(time.Minute)).ID
			f.nack(f.lease(), 0)
			f.abandon(f.lease())
			f.pass(1000 * time.Hour)
			equal(f, f.must(id).State, pawl.Dead, "state")
			f.retry(id, false)
			f.ack(f.lease())
			equal(f, f.must(id).State, pawl.Completed, "state after a retry that succeeded")
			equal(f, f.must(id).Attempts, 1, "attempts")
			equal(f, f.must(id).Failures, 2, "failures")
			f.pass(time.Minute)
			equal(f, f.job(id) == nil, true, "the completed job is gone")
		}),
		newTest("a job without a run",
			"A job whose idempotency key is done also becomes completed if it has a retention, with the same attempts.", func(f *fixture) {
				f.add(effect("e"))
				f.ack(f.lease())
				id := f.add(effect("e"), kept(time.Hour)).ID
				f.pass(time.Second)
				equal(f, len(f.fetch(9)), 0, "jobs to fetch")
				e := f.must(id)
				equal(f, e.State, pawl.Completed, "state")
				equal(f, e.Attempts, 0, "attempts")
				f.sameTime(e.Completed, time.Now(), "when it was completed")
				f.pass(time.Hour)
				equal(f, f.job(id) == nil, true, "the completed job is gone")
			}),
		restartTest("after a restart", "Completed jobs survive a restart unchanged, for the rest of their time.", func(f *fixture) {
			for i := range 3 {
				f.completedBy(time.Duration(i+1)*time.Hour, of(fmt.Sprint(i)), func(e *pawl.Envelope) { e.Payload = make([]byte, 3000) })
			}
			unchanged := f.unchanged()
			f.restart()
			unchanged("after the restart")
			f.close()
			f.pass(90 * time.Minute)
			f.reopen()
			equal(f, kindsOf(f.list(pawl.Filter{})), "12", "completed jobs whose time did not end while the queue was closed")
			f.pass(30 * time.Minute)
			equal(f, kindsOf(f.list(pawl.Filter{})), "2", "completed jobs later")
		}),
		newTest("many", "Completed jobs are removed at their time, however many there are.", func(f *fixture) {
			batch := newBatch(1100, kept(time.Minute))
			f.enqueue(batch...)
			acked := make(chan error, len(batch))
			for _, l := range f.leases(len(batch)) { // at once, so that they may share a commit
				go func() { acked <- f.q.Settle(f.Context(), l.Ack()) }()
			}
			for range batch {
				f.ok(<-acked, "ack")
			}
			equal(f, len(f.list(pawl.Filter{State: pawl.Completed})), len(batch), "records")
			f.pass(time.Minute)
			equal(f, len(f.list(pawl.Filter{})), 0, "completed jobs after their time")
		}),
		newTest("by the wall clock", "A completed job is removed at its time by the wall clock, also after the clock was "+
			"set.", func(f *fixture) {
			c := f.clocked()
			id := f.completedBy(24 * time.Hour)
			c.step(25 * time.Hour)
			f.add()
			f.ack(f.lease())
			f.pass(time.Minute)
			equal(f, f.job(id) == nil, true, "the completed job is gone")
		}),
	}...)
}
