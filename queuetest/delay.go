package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// delayed lets a delayed job become due while a fetch waits for it.
func delayed(name string, delay time.Duration, begin func(*fixture)) test {
	return newTest(name, "A delayed job is never fetched before its time. It is fetched at its time and is ready since "+
		"then.", func(f *fixture) {
		begin(f)
		due := time.Now().Add(delay)
		leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
		f.until(due)
		f.waits(call, "before the time")
		if delay > f.config.Reduced.Looks {
			equal(f, len(f.fetch(1)), 0, "jobs before the time")
		}
		f.await(call)
		f.onTime(due, "the time of the fetch")
		f.sameTime((*leases)[0].NotBefore, due, "since when it is ready")
	})
}

func delayTests() []test {
	return []test{
		delayed("enqueued with a delay", 90*time.Second, func(f *fixture) { f.add(after(90 * time.Second)) }),
		delayed("enqueued for a time", time.Hour+1, func(f *fixture) {
			f.add(func(e *pawl.Envelope) { e.NotBefore = time.Now().Add(time.Hour + 1) })
		}),
		delayed("enqueued for a day and a half", 36*time.Hour+1, func(f *fixture) {
			f.add(func(e *pawl.Envelope) { e.NotBefore = time.Now().Add(36*time.Hour + 1) })
		}).unless(looking), // more than 100 000 times
		delayed("failed", time.Minute, func(f *fixture) {
			f.add()
			f.nack(f.lease(), time.Minute)
		}),
		delayed("snoozed by a nanosecond", 1, func(f *fixture) {
			f.add()
			f.snooze(f.lease(), 1)
		}),
		delayed("beside a lease", time.Minute, func(f *fixture) {
			f.add(on("other"))
			f.lease("other")
			f.add(after(time.Minute))
		}),
		delayed("first of several", time.Minute, func(f *fixture) {
			f.add(after(time.Hour))
			f.add(after(time.Minute))
		}),
		newTest("each at its own time", "Delayed jobs become ready one by one, in the order of their times.", func(f *fixture) {
			start := time.Now()
			for _, delay := range []time.Duration{3, 1, 2} {
				f.add(after(delay * 10 * time.Second))
			}
			for n := range 3 {
				leases, err := f.q.Fetch(f.patient(), pawl.Request{Max: 9})
				f.ok(err, "fetch")
				equal(f, len(leases), 1, "jobs")
				f.onTime(start.Add(time.Duration(n+1)*10*time.Second), "the time of the fetch")
			}
		}),
		newTest("state", "A job is delayed until its time, then ready.", func(f *fixture) {
			id := f.add(after(time.Minute)).ID
			equal(f, f.must(id).State, pawl.Delayed, "state")
			f.pass(time.Minute - 1)
			equal(f, f.must(id).State, pawl.Delayed, "state before the time")
			f.pass(1)
			equal(f, f.must(id).State, pawl.Ready, "state at the time")
			equal(f, f.must(id).Attempts, 0, "attempts")
		}),
		newTest("a time of the past", "A job whose NotBefore is in the past is ready at once, since now.", func(f *fixture) {
			for _, at := range []time.Time{
				{}, time.Unix(0, 0), time.Date(-4000, 1, 1, 0, 0, 0, 0, time.UTC), time.Now().Add(-1), time.Now(),
			} {
				e := f.add(func(e *pawl.Envelope) { e.NotBefore = at })
				f.sameTime(e.NotBefore, time.Now(), "not before")
				equal(f, f.lease().ID, e.ID, "job")
			}
		}),
		newTest("years ahead", "NotBefore may be in any year that a time.Time can hold.", func(f *fixture) {
			for _, year := range []int{2261, 2263, 3000, 9999} {
				at := time.Date(year, 1, 1, 0, 0, 0, 1, time.UTC)
				id := f.add(func(e *pawl.Envelope) { e.NotBefore = at }).ID
				f.sameTime(f.must(id).NotBefore, at, "not before")
			}
			f.pass(time.Hour)
			equal(f, len(f.fetch(9)), 0, "jobs that are due")
		}),
		newTest("the longest delay", "A delay never overflows into the past.", func(f *fixture) {
			const longest = 1<<63 - 1
			f.add(after(longest))
			f.add()
			f.nack(f.lease(), longest)
			f.add()
			f.snooze(f.lease(), longest)
			f.pass(time.Hour)
			equal(f, len(f.fetch(9)), 0, "jobs that are due")
		}),
		newTest("many due at once", "All jobs that are due become ready, however many there are.", func(f *fixture) {
			batch := newBatch(1200, after(time.Second))
			f.enqueue(batch...)
			f.due(time.Second)
			equal(f, len(f.fetch(len(batch))), len(batch), "jobs")
		}),
	}
}
