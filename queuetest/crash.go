package queuetest

import (
	"fmt"

	"github.com/gopawl/pawl"
)

// crashCap lets a job crash until it is dead, after as many crashes as it may survive.
func crashCap(max, survives int) test {
	return newTest(fmt.Sprint("a cap of ", max),
		"At the limit of crashes, 5 by default, a job becomes dead with the reason poison and keeps its attempts.", func(f *fixture) {
			id := f.add().ID
			f.nack(f.lease(), 0)
			for n := range survives {
				f.crash(id)
				equal(f, f.must(id).State, pawl.Ready, "state")
				equal(f, f.must(id).Crashes, n+1, "crashes")
			}
			l := f.crash(id)
			e := f.must(id)
			equal(f, e.State, pawl.Dead, "state")
			equal(f, deathText(e), deathText(&pawl.Envelope{Death: &pawl.Death{Reason: pawl.ReasonPoison, At: l.Expires}}), "death")
			equal(f, e.Attempts, 1, "attempts")
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
		}).with(Settings{MaxCrashes: max})
}

// crash leases a job, which is the only one, and lets the lease end.
func (f *fixture) crash(id pawl.ID) *pawl.Lease {
	f.Helper()
	l := f.lease()
	equal(f, l.ID, id, "job")
	f.expire(l)
	return l
}

func crashTests() (tests []test) {
	tests = append(tests, crashCap(0, 4), crashCap(1, 0), crashCap(2, 1), crashCap(7, 6))
	for _, v := range verbs {
		if v.next == "" || v.next == pawl.Dead {
			continue
		}
		tests = append(tests,
			newTest(v.name+" resets", "Crashes count in a row: every settlement resets them to 0.", func(f *fixture) {
				id := f.add().ID
				for range 4 {
					f.crash(id)
				}
				l := f.lease()
				equal(f, l.Crashes, 4, "crashes before")
				f.end(v, l)
				equal(f, f.must(id).Crashes, 0, "crashes after")
				f.pass(snoozed)
				for range 4 {
					f.crash(id)
				}
				equal(f, f.must(id).State, pawl.Ready, "state after four more")
			}),
		)
	}
	return append(tests,
		newTest("no cap", "Without a limit, a job may crash any number of times.", func(f *fixture) {
			id := f.add().ID
			for range 20 {
				f.crash(id)
			}
			equal(f, f.must(id).State, pawl.Ready, "state")
			equal(f, f.must(id).Crashes, 20, "crashes")
		}).with(Settings{MaxCrashes: -1}),
		newTest("a crash burns no retry", "An attempt that never settled does not count in Attempts.", func(f *fixture) {
			id := f.add(func(e *pawl.Envelope) { e.MaxRetries = 1 }).ID
			for range 3 {
				f.crash(id)
			}
			l := f.lease()
			equal(f, l.Attempt(), 1, "the run under way")
			equal(f, l.LastAttempt(), false, "the last run")
		}),
		newTest("poison that is retried",
			"A dead job that is retried starts without crashes. It may crash as often as a new job.", func(f *fixture) {
				id := f.add().ID
				for range 5 {
					f.crash(id)
				}
				f.retry(id, true)
				equal(f, f.must(id).Crashes, 0, "crashes")
				for range 4 {
					f.crash(id)
				}
				equal(f, f.must(id).State, pawl.Ready, "state")
			}),
	)
}
