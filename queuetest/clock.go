package queuetest

import (
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

// clock is a wall clock that a case sets. It continues to run between two steps.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())).Round(0) }

func (c *clock) step(d time.Duration) { c.ahead.Add(int64(d)) }

// stepped sets the clock while jobs are leased, one for each way to end a lease.
func stepped(step time.Duration) test {
	return newTest("a step by "+step.String(),
		"Leases expire on monotonic time, so a step of the wall clock expires none. A job that becomes ready afterwards is "+
			"ready by the new time.", func(f *fixture) {
			var c clock
			f.fresh(Settings{Now: c.now})
			for _, v := range verbs {
				f.add(of(v.name))
			}
			f.add(of("crash"))
			leases := f.leases(len(verbs) + 1)
			crash := leases[len(verbs)]
			waiting := f.add().ID
			c.step(step)
			f.pass(crash.Length - 1)
			equal(f, f.reap(), 0, "leases reaped")
			for i, v := range verbs {
				f.end(v, leases[i])
				if e := f.job(leases[i].ID); v.next != "" {
					equal(f, e.State, v.next, "state after "+v.name)
				}
			}
			fresh := f.add().ID
			f.pass(1)
			equal(f, f.must(crash.ID).State, pawl.Ready, "state of the job that crashed")
			equal(f, f.must(crash.ID).Crashes, 1, "crashes")
			equal(f, f.must(waiting).State, pawl.Ready, "state of a job that was ready before the step")
			equal(f, f.must(fresh).State, pawl.Ready, "state of a new job")
			f.pass(snoozed)
			equal(f, len(f.fetch(99)), 6, "jobs: nack, release, snooze, crash and the two that never ran")
		})
}

func clockTests() (tests []test) {
	const day, century = 24 * time.Hour, 100 * 365 * 24 * time.Hour
	for _, step := range []time.Duration{time.Second, day, century, -time.Second, -day, -century} {
		tests = append(tests, stepped(step))
	}
	for _, step := range []time.Duration{day, -day} {
		tests = append(tests,
			newTest("a lease after a step by "+step.String(),
				"A lease that is granted or extended after a step of the wall clock lasts its full length.", func(f *fixture) {
					var c clock
					f.fresh(Settings{Now: c.now})
					f.addKinds("a", "b")
					c.step(step)
					leases := f.leases(2)
					f.pass(leases[0].Length - 1)
					equal(f, len(f.extend(leases[1])), 0, "leases lost")
					f.pass(1)
					equal(f, f.must(leases[0].ID).State, pawl.Ready, "state at the end of the lease")
					f.pass(leases[1].Length - 2)
					equal(f, f.must(leases[1].ID).State, pawl.Leased, "state before the end of the extended lease")
					f.pass(1)
					equal(f, f.must(leases[1].ID).State, pawl.Ready, "state at its end")
				}),
		)
	}
	return append(tests,
		newTest("set back", "A delayed job becomes ready at its time by the wall clock, also after the clock was set back.", func(f *fixture) {
			var c clock
			f.fresh(Settings{Now: c.now})
			f.add(after(10 * time.Minute))
			due := c.now().Add(10 * time.Minute)
			c.step(-time.Hour)
			f.pass(70*time.Minute - 1)
			equal(f, len(f.fetch(1)), 0, "jobs before the time")
			_, call := f.fetching(f.Context(), pawl.Request{Max: 1})
			f.waits(call, "before the time")
			f.await(call)
			f.sameTime(c.now(), due, "the wall clock at the fetch")
		}),
		newTest("set forward",
			"After the wall clock was set forward past the time of a delayed job, the next fetch gets the job. The job is "+
				"ready since its scheduled time.", func(f *fixture) {
				var c clock
				f.fresh(Settings{Now: c.now})
				f.add(of("b"), after(24*time.Hour))
				f.add(of("a"), after(time.Hour))
				c.step(25 * time.Hour)
				equal(f, kinds(f.fetch(9)), "ab", "order")
			}),
	)
}
