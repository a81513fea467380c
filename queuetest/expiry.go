package queuetest

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// alarmTests cover what notices the deadline of a job: fetches, drains, clocks, and
// neighboring jobs.
func alarmTests() (tests []test) {
	const never = "A job past its deadline is never fetched."
	for _, wait := range []pawl.Wait{pawl.WaitDrained, pawl.WaitFinished} {
		tests = append(tests,
			newTest("and "+waits[wait],
				"A fetch that waits for the end of the work returns at the moment at which the last job expires.", func(f *fixture) {
					e := f.add(within(time.Hour))
					f.expire(f.lease())
					_, call := f.fetching(f.Context(), pawl.Request{Max: 1, Ahead: 1, Wait: wait})
					f.waits(call, "while a suspect is ready")
					f.pass(time.Hour - 30*time.Second - 1)
					f.waits(call, "before the deadline")
					f.pass(1)
					f.ends(call, pawl.ErrEmpty, "fetch")
					f.expired(e.ID, e.Deadline, "after the drain")
					if wait == pawl.WaitFinished {
						f.add(within(time.Hour), after(2*time.Hour))
						_, call = f.fetching(f.Context(), pawl.Request{Max: 1, Wait: wait})
						f.waits(call, "while a job is delayed")
						f.pass(time.Hour)
						f.ends(call, pawl.ErrEmpty, "fetch")
					}
				}),
		)
	}
	return append(tests,
		newTest("a fetch at the deadline", never, func(f *fixture) {
			for range 20 {
				e := f.add(within(time.Minute))
				<-time.After(time.Minute) // nothing waits for the queue to act
				equal(f, len(f.fetch(9)), 0, "jobs to fetch")
				f.pass(0)
				f.expired(e.ID, e.Deadline, "at the deadline")
			}
		}),
		newTest("a fetch before the deadline", "A job before its deadline is fetched as usual.", func(f *fixture) {
			e := f.add(within(time.Minute), after(time.Minute-1))
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
			f.await(call)
			f.sameTime(time.Now(), e.Deadline.Add(-1), "the time of the fetch")
			f.ack((*leases)[0])
		}),
		newTest("a fetch that waits", never+" A job that becomes due at its deadline is not fetched.", func(f *fixture) {
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
			late := f.add(within(time.Minute), after(2*time.Minute))
			exact := f.add(func(e *pawl.Envelope) {
				e.NotBefore = time.Now().Add(time.Minute)
				e.Deadline = e.NotBefore
			})
			f.add(within(-1))
			f.pass(10 * time.Minute)
			f.waits(call, "after all deadlines")
			f.expired(late.ID, late.Deadline, "when it was due after its deadline")
			f.expired(exact.ID, exact.Deadline, "when it was due at its deadline")
			id := f.add().ID
			f.gets(call, leases, id, "fetch")
		}),
		newTest("passed over until then",
			never+" A job that is passed over for its key expires as usual, and a drain does not wait for it afterwards.", func(f *fixture) {
				f.add(effect("x"))
				l := f.lease()
				e := f.add(effect("x"), within(time.Second))
				_, call := f.fetching(f.Context(), pawl.Request{Max: 1, Wait: pawl.WaitDrained})
				f.pass(time.Second)
				equal(f, f.must(e.ID).State, pawl.Dead, "state at the deadline")
				f.waits(call, "while the other is leased")
				f.ack(l)
				f.ends(call, pawl.ErrEmpty, "fetch")
				f.expired(e.ID, e.Deadline, "after the ack")
			}),
		newTest("each at its own", "Jobs expire one by one, each at its own deadline, whatever their order and states.", func(f *fixture) {
			const step = 100 * time.Second
			jobs := make(map[int]*pawl.Envelope)
			for i, n := range []int{5, 1, 4, 2, 3, 6} { // that many steps away
				if i%2 == 0 {
					jobs[n] = f.add(within(time.Duration(n)*step), after(2*time.Hour))
				} else {
					jobs[n] = f.add(within(time.Duration(n)*step), on(fmt.Sprint(i)))
				}
			}
			for n := 1; n <= len(jobs); n++ {
				e := jobs[n]
				f.pass(time.Until(e.Deadline) - 1)
				equal(f, f.must(e.ID).State != pawl.Dead, true, "a job lives until its deadline")
				f.pass(time.Second)
				f.expired(e.ID, e.Deadline, "after its deadline")
			}
		}),
		newTest("many at once", "Every job past its deadline expires, however many there are.", func(f *fixture) {
			batch := newBatch(2500)
			for i, e := range batch {
				e.Deadline = time.Now().Add(time.Minute)
				if i%2 == 0 {
					e.Delay = time.Hour
				}
			}
			f.enqueue(batch...)
			others := newBatch(10)
			f.enqueue(others...)
			f.pass(time.Minute)
			dead := f.list(pawl.Filter{State: pawl.Dead, Reason: pawl.ReasonDeadline})
			equal(f, len(dead), len(batch), "dead jobs")
			for _, e := range dead {
				f.sameTime(e.Death.At, e.Deadline, "time of death")
			}
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: len(others), Dead: len(batch)}, "the deadline")
			f.leases(len(others))
		}),
		newTest("retry",
			"Retry of a dead job past its deadline returns ErrConflict, because the job would expire at once. A job that "+
				"is retried earlier lives until its deadline.", func(f *fixture) {
				e := f.add(within(time.Hour))
				f.abandon(f.lease())
				f.pass(time.Hour - 1)
				f.retry(e.ID, false)
				equal(f, f.must(e.ID).State, pawl.Ready, "state after a retry before the deadline")
				f.pass(1)
				f.expired(e.ID, e.Deadline, "after the retry")
				for range 2 {
					for _, keep := range []bool{false, true} {
						unchanged := f.unchanged()
						f.is(f.retrier().Retry(f.Context(), e.ID, keep), pawl.ErrConflict, "retry")
						unchanged("after the refusal")
					}
					f.pass(time.Hour)
				}
			}),
		newTest("what has ended",
			"A deadline ends only its own job: no job that replaced it, and no later job with its ID.", func(f *fixture) {
				old := f.add(within(time.Minute))
				f.ack(f.lease())
				again := f.add(func(e *pawl.Envelope) { e.ID = old.ID })
				f.add(within(time.Minute), unique("key"))
				replaced := newcomer("new", answer(pawl.Replace))
				f.enqueue(replaced)
				later := newcomer("later", unique("other"), within(time.Minute))
				f.enqueue(later)
				f.enqueue(newcomer("later", unique("other"), within(time.Hour), answer(pawl.Replace)))
				f.pass(time.Minute)
				f.stored(again, "a job under the ID of one that is gone")
				f.stored(replaced, "a job that replaced another")
				equal(f, f.must(later.ID).State, pawl.Ready, "state of a job that replaced another with an earlier deadline")
				f.pass(time.Hour)
				equal(f, f.must(later.ID).State, pawl.Dead, "state after its own deadline")
			}),
		aloneTest("a restart",
			"A deadline that passes while the queue is closed ends its job at open. If the job was leased, a crash counts "+
				"too.", func(f *fixture) {
				var ids []pawl.ID
				for _, state := range []pawl.State{pawl.Leased, pawl.Delayed, pawl.Ready} {
					ids = append(ids, f.held(state, within(time.Hour)))
				}
				for _, due := range []bool{false, true} {
					f.close()
					if due {
						f.pass(2 * time.Hour)
					}
					f.reopen()
					for _, id := range ids {
						equal(f, f.must(id).State == pawl.Dead, due, "the job is dead")
					}
				}
				equal(f, f.must(ids[0]).Crashes, 1, "crashes of the one that was leased")
				for _, id := range ids {
					equal(f, f.must(id).Death.Reason, pawl.ReasonDeadline, "reason")
					equal(f, f.must(id).Failures, 0, "failures")
				}
				equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			}),
		aloneTest("a restart with the lease past it",
			"A job that open finds leased and past its deadline becomes dead with one crash more.", func(f *fixture) {
				id := f.add(within(time.Second)).ID
				f.lease()
				f.pass(2 * time.Second)
				f.restart()
				f.expired(id, time.Now(), "after the restart")
				equal(f, f.must(id).Crashes, 1, "crashes")
				equal(f, f.must(id).Attempts, 0, "attempts")
			}),
		newTest("a clock that is set forward", never+" Deadlines follow the wall clock.", func(f *fixture) {
			c := f.clocked()
			id := f.add(within(time.Hour)).ID
			c.step(2 * time.Hour)
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			f.pass(time.Hour)
			f.diedOf(id, pawl.ReasonDeadline, "state")
		}),
		newTest("a clock that is set back", "A job expires when the wall clock shows its deadline, also after the clock "+
			"was set back.", func(f *fixture) {
			c := f.clocked()
			e := f.add(within(10 * time.Minute))
			c.step(-time.Hour)
			f.pass(70*time.Minute - 1)
			equal(f, f.must(e.ID).State, pawl.Ready, "state before the deadline")
			f.pass(1)
			f.expired(e.ID, e.Deadline, "at the deadline")
		}),
	)
}
