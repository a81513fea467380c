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
			equal(f, l.Attempt(), 1, "the attempt under way")
			equal(f, l.LastAttempt(), false, "the last attempt")
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

// ask is a fetch of up to max jobs, of which idle would start at once, and the kinds of
// the jobs that it must get.
type ask struct {
	max, idle int
	want      string
}

// suspects lets jobs crash this often, adds the clean jobs x, y, and z, and fetches.
func suspects(name, rule string, crashes int, crashed string, asks ...ask) test {
	return newTest(name, rule, func(f *fixture) {
		f.crashedJobs(crashes, crashed)
		f.addKinds("x", "y", "z")
		for _, a := range asks {
			equal(f, kinds(f.request(pawl.Request{Max: a.max, Ahead: max(0, a.max-a.idle)})), a.want, "jobs of a fetch")
		}
	})
}

// crashedJobs adds a job of each name and lets all of them crash this often: at most
// twice, because repeat suspects are never leased at the same time.
func (f *fixture) crashedJobs(crashes int, names string) {
	f.Helper()
	for _, name := range names {
		f.add(of(string(name)))
	}
	for range crashes {
		leases := f.leases(len(names))
		equal(f, kinds(leases), names, "jobs that crash")
		f.expire(leases[0])
	}
}

func suspectTests() []test {
	const idle, single = "A suspect is leased only into an idle slot, so that it starts at once.",
		"One repeat suspect is leased at a time."
	tests := []test{
		suspects("clean jobs pass", idle, 1, "a", ask{9, 0, "xyz"}, ask{9, 0, ""}),
		suspects("it keeps its place where a slot is idle", idle, 1, "a", ask{9, 1, "axyz"}),
		suspects("one for each idle slot", idle, 1, "abc", ask{9, 2, "abxyz"}, ask{9, 1, "c"}),
		suspects("Max counts all", idle, 1, "ab", ask{1, 9, "a"}, ask{2, 9, "bx"}),
		suspects("a negative count is none", idle, 1, "a", ask{9, -1, "xyz"}),
		suspects("two crashes", single, 2, "ab", ask{9, 9, "axyz"}, ask{9, 9, ""}),
		suspects("two crashes need an idle slot too", idle, 2, "a", ask{9, 0, "xyz"}, ask{9, 1, "a"}),
	}
	for _, v := range verbs {
		tests = append(tests,
			newTest("after "+v.name, single+" The next one is granted when that lease ends.", func(f *fixture) {
				f.crashedJobs(2, "ab")
				first := f.fetch(9)
				equal(f, kinds(first), "a", "jobs of the first fetch")
				leases, call := f.fetching(f.Context(), pawl.Request{Max: 2})
				f.waits(call, "while the first is leased")
				f.end(v, first[0])
				f.ends(call, nil, "fetch")
				// A release leaves a job clean and in its place.
				want := map[string]string{"release": "ab", "nack": "ba"}[v.name]
				if want == "" {
					want = "b"
				}
				equal(f, kinds(*leases), want, "the next")
			}),
		)
	}
	return append(tests,
		newTest("after an expiry", single+" An expiry also ends its lease.", func(f *fixture) {
			f.crashedJobs(2, "ab")
			l := f.leases(1)[0]
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 9})
			f.await(call)
			equal(f, kinds(*leases), "a", "the next, which kept its place")
			equal(f, (*leases)[0].Crashes, l.Crashes+1, "crashes")
		}),
		newTest("over all queues", single+" This holds over all queues.", func(f *fixture) {
			f.fill(1, "a", "b")
			for range 2 {
				f.expire(f.leases(2, "a", "b")[0])
			}
			equal(f, len(f.fetch(9, "a")), 1, "jobs of the first fetch")
			equal(f, len(f.fetch(9, "b")), 0, "jobs of the second fetch")
		}),
		newTest("a job that crashed once does not count as one that crashed twice",
			"Suspects that crashed once are leased side by side, and beside a repeat suspect.", func(f *fixture) {
				f.crashedJobs(2, "a")
				f.add(of("b"), priority(1))
				f.add(of("c"), priority(1))
				first := f.request(pawl.Request{Max: 9, Ahead: 9}) // without an idle slot, so a is not granted
				equal(f, kinds(first), "bc", "jobs that crash")
				f.expire(first[0])
				equal(f, kinds(f.fetch(9)), "bca", "jobs")
			}),
		newTest("clean jobs take no idle slot from it", idle, func(f *fixture) {
			f.crashedJobs(1, "a")
			f.add(of("p"), priority(1))
			f.addKinds("x")
			equal(f, kinds(f.request(pawl.Request{Max: 9, Ahead: 8})), "pax", "jobs with one idle slot")
		}),
		newTest("a fetch without an idle slot waits for clean jobs", idle, func(f *fixture) {
			f.crashedJobs(1, "a")
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 1, Ahead: 1})
			f.waits(call, "while there is no clean job")
			f.add(of("x"))
			f.ends(call, nil, "fetch")
			equal(f, kinds(*leases), "x", "jobs")
		}),
	)
}
