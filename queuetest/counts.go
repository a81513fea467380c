package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// counts returns the counts that the queue reports. It ends the case if the queue has
// none.
func (f *fixture) counts() map[string]pawl.Counts {
	f.Helper()
	if f.config.Counts == nil {
		f.Skip("the queue does not count")
	}
	all, err := f.config.Counts(f.Context(), f.q)
	f.ok(err, "count")
	return all
}

// countsAre requires the counts of one queue, and the same counts from a list of all
// jobs.
func (f *fixture) countsAre(queue string, want pawl.Counts, when string) {
	f.Helper()
	equal(f, f.counts()[queue], want, "counts after "+when)
	var listed pawl.Counts
	for _, e := range f.list(pawl.Filter{Queue: queue}) {
		*driver.CountOf(&listed, e.State)++
	}
	equal(f, listed, want, "jobs listed after "+when)
}

var countTests = []test{
	newTest("after every transition",
		"A job is in exactly one state, and the counts equal the number of jobs in each state.", func(f *fixture) {
			var l *pawl.Lease
			lease := func() { l = f.lease() }
			for _, step := range []struct {
				name string
				do   func()
				want pawl.Counts
			}{
				{"enqueue", func() { f.add() }, pawl.Counts{Ready: 1}},
				{"enqueue with a delay", func() { f.add(after(time.Hour)) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"extend", func() { f.extend(l) }, pawl.Counts{Leased: 1, Delayed: 1}},
				{"nack", func() { f.nack(l, 0) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch after nack", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"nack with a delay", func() { f.nack(l, time.Minute) }, pawl.Counts{Delayed: 2}},
				{"the delay", func() { f.pass(time.Minute) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch after the delay", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"snooze", func() { f.snooze(l, time.Minute) }, pawl.Counts{Delayed: 2}},
				{"the snooze", func() { f.pass(time.Minute) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch after the snooze", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"release", func() { f.release(l) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch after release", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"an expiry", func() { f.expire(l) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch after the expiry", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"the last crash", func() { f.expire(l) }, pawl.Counts{Dead: 1, Delayed: 1}},
				{"retry", func() { f.retry(l.ID, false) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"fetch after retry", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"abandon", func() { f.abandon(l) }, pawl.Counts{Dead: 1, Delayed: 1}},
				{"another retry", func() { f.retry(l.ID, true) }, pawl.Counts{Ready: 1, Delayed: 1}},
				{"the last fetch", lease, pawl.Counts{Leased: 1, Delayed: 1}},
				{"ack", func() { f.ack(l) }, pawl.Counts{Delayed: 1}},
			} {
				step.do()
				f.countsAre(pawl.DefaultQueue, step.want, step.name)
			}
		}).with(Settings{MaxCrashes: 2}),
	newTest("each queue apart", "Counts belong to one queue. A queue that is empty now is still known.", func(f *fixture) {
		equal(f, len(f.counts()), 0, "queues before the first job")
		f.fill(3, "b")
		f.fill(2, "a")
		f.leases(1, "b")
		for _, l := range f.leases(2, "a") {
			f.ack(l)
		}
		f.countsAre("b", pawl.Counts{Ready: 2, Leased: 1}, "a fetch")
		f.countsAre("a", pawl.Counts{}, "all acks")
		equal(f, len(f.counts()), 2, "queues")
	}),
	aloneTest("after a restart", "Counts are correct after a restart.", func(f *fixture) {
		for _, state := range []pawl.State{pawl.Dead, pawl.Leased, pawl.Delayed, pawl.Ready} {
			f.held(state)
		}
		f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 1, Delayed: 1, Leased: 1, Dead: 1}, "one job of each state")
		f.restart()
		f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 2, Delayed: 1, Dead: 1}, "the restart")
	}),
}
