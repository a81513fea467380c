package queuetest

import (
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// expired requires that a job became dead at its deadline, and that no fetch gets it.
func (f *fixture) expired(id pawl.ID, at time.Time, what string) {
	f.Helper()
	e := f.must(id)
	equal(f, e.State, pawl.Dead, "state "+what)
	equal(f, deathText(e), deathText(&pawl.Envelope{Death: &pawl.Death{Reason: pawl.ReasonDeadline, At: at}}), "death "+what)
	equal(f, len(f.fetch(9, e.Queue)), 0, "jobs to fetch "+what)
}

// expires lets a job that waits, and failed once, reach its deadline.
func expires(state pawl.State) test {
	return newTest("a job that is "+string(state),
		"At its deadline, not an instant earlier, a job that is not leased becomes dead with the reason deadline. Nothing "+
			"else changes.", func(f *fixture) {
			e := f.add(priority(3), within(time.Hour), func(e *pawl.Envelope) { e.Payload = make([]byte, 3000) })
			f.nack(f.lease(), 0)
			switch l := f.lease(); state {
			case pawl.Ready:
				f.release(l)
			case pawl.Delayed:
				f.snooze(l, 2*time.Hour)
			}
			want := f.must(e.ID)
			f.pass(time.Hour - 1)
			f.same(f.must(e.ID), want, "the job before its deadline")
			equal(f, want.State, state, "state")
			f.pass(1)
			want.State, want.Death = pawl.Dead, &pawl.Death{Reason: pawl.ReasonDeadline, At: e.Deadline}
			f.same(f.must(e.ID), want, "the job at its deadline")
			f.pass(2 * time.Hour)
			f.expired(e.ID, e.Deadline, "later")
			f.same(f.must(e.ID), want, "the job, later")
		})
}

// late enqueues a job whose deadline is in the past, or now.
func late(name string, ago time.Duration, change ...func(*pawl.Envelope)) test {
	return newTest("enqueued "+name,
		"Enqueue accepts a job that is past its deadline. The job is dead at once and is never fetched.", func(f *fixture) {
			e := f.add(append(change, within(-ago))...)
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			f.pass(0)
			f.expired(e.ID, time.Now(), "at once")
			equal(f, f.must(e.ID).Attempts, 0, "attempts")
			equal(f, f.must(e.ID).Failures, 0, "failures")
			f.sameTime(f.must(e.ID).Deadline, e.Deadline, "deadline")
		})
}

// outlives ends a lease after the deadline of its job, while a fetch waits.
func outlives(end ending) test {
	return newTest("leased, and "+end.name,
		"The deadline does not end a lease. A settlement that would make the job ready or delayed after the deadline makes "+
			"it dead, and no fetch gets it. A failed attempt still counts and is in the history; an attempt that did "+
			"not settle is not.", func(f *fixture) {
			for _, past := range []time.Duration{0, time.Second} {
				f.fresh(Settings{})
				l, want := f.seasonedUntil(10 * time.Second)
				f.pass(10*time.Second + past)
				f.same(f.must(l.ID), want, "the job while it is leased")
				crashes := want.Crashes
				_, call := f.fetching(f.Context(), pawl.Request{Max: 1, Wait: pawl.WaitFinished})
				f.waits(call, "while it is leased")
				end.do(f, l)
				if end.name != "restart" { // which does not end the work
					f.ends(call, pawl.ErrEmpty, "a fetch")
				}
				end.ended(want, pawl.ReasonDeadline)
				if end.crash {
					want.Crashes = crashes + 1
				}
				got := f.must(l.ID)
				want.NotBefore = got.NotBefore // which does not apply to a dead job
				if end.failed {
					want.BackoffSince = got.BackoffSince // nor does this
				}
				f.same(got, want, "the job")
				f.expired(l.ID, time.Now(), "after "+end.name)
			}
		})
}

// seasonedUntil is seasoned for a job with a deadline that is this far away.
func (f *fixture) seasonedUntil(d time.Duration) (*pawl.Lease, *pawl.Envelope) {
	f.Helper()
	id := f.add(within(32*time.Second+d), func(e *pawl.Envelope) { e.Payload = make([]byte, 2000) }).ID
	f.pass(time.Second)
	f.nack(f.lease(), 0)
	f.expire(f.lease())
	f.pass(time.Second)
	l := f.lease()
	return l, f.must(id)
}

func deadlineTests() (tests []test) {
	for _, state := range []pawl.State{pawl.Ready, pawl.Delayed} {
		tests = append(tests, expires(state))
	}
	for _, end := range endings {
		if end.name != "abandon, exhausted" && end.name != "abandon, permanent" {
			tests = append(tests, outlives(end).needing(end.needs))
		}
	}
	tests = append(tests,
		late("past its deadline", time.Second),
		late("at its deadline", 0),
		late("long past its deadline", 250*365*24*time.Hour),
		late("past its deadline with a delay", time.Second, after(time.Hour)),
		late("at its deadline with a delay", 0, after(time.Hour)),
		impossible("a deadline before its time", func(e *pawl.Envelope) {
			e.NotBefore, e.Deadline = time.Now().Add(2), time.Now().Add(1)
		}),
		newTest("retry of what died before",
			"A dead job stays unchanged at its deadline. After that it cannot be retried.", func(f *fixture) {
				id := f.add(within(time.Hour)).ID
				f.abandon(f.lease())
				unchanged := f.unchanged()
				f.pass(time.Hour)
				unchanged("at the deadline")
				f.is(f.retrier().Retry(f.Context(), id, false), pawl.ErrConflict, "retry at the deadline")
				unchanged("after the refusal")
			}),
		newTest("leased, and ack", "An attempt that succeeds after the deadline succeeds.", func(f *fixture) {
			for _, retain := range []time.Duration{0, time.Hour} {
				id := f.add(within(10*time.Second), kept(retain)).ID
				l := f.lease()
				f.pass(20 * time.Second)
				f.extend(l)
				f.pass(20 * time.Second)
				f.ack(l)
				f.pass(0)
				equal(f, f.job(id) == nil, retain == 0, "the job is gone")
			}
			equal(f, f.list(pawl.Filter{})[0].State, pawl.Completed, "state of the record")
		}),
		newTest("leased, and abandon", "Abandon keeps its reason, also after the deadline.", func(f *fixture) {
			id := f.add(within(10 * time.Second)).ID
			l := f.lease()
			f.pass(20 * time.Second)
			f.abandon(l)
			f.pass(time.Second)
			e := f.must(id)
			equal(f, e.Death.Reason, pawl.ReasonExhausted, "reason")
			equal(f, e.Attempts, 1, "attempts")
		}),
		newTest("cancelled too", "A job that is cancelled while leased gets the reason cancelled, also after its deadline.", func(f *fixture) {
			for _, end := range endings[:len(endings)-1] {
				f.fresh(Settings{})
				id := f.add(within(10 * time.Second)).ID
				l := f.lease()
				f.cancel(id)
				f.pass(20 * time.Second)
				end.do(f, l)
				f.pass(0)
				equal(f, f.must(id).Death.Reason, pawl.ReasonCancelled, "reason after "+end.name)
			}
		}),
		newTest("put back before it",
			"A job that returns to the queue before its deadline waits, and becomes dead at the deadline, even if its "+
				"delay ends later.", func(f *fixture) {
				ends := slices.DeleteFunc(slices.Clone(endings), func(end ending) bool { return end.crash })
				for _, end := range append(ends[:2:2], ends[4:]...) {
					f.fresh(Settings{})
					e := f.add(within(10 * time.Second))
					end.do(f, f.lease())
					f.pass(10*time.Second - 1)
					if f.must(e.ID).State == pawl.Dead {
						f.Fatalf("the job became dead before its deadline after %s", end.name)
					}
					f.pass(1)
					f.expired(e.ID, e.Deadline, "after "+end.name)
				}
			}),
		newTest("none", "A job without a deadline never expires.", func(f *fixture) {
			e := f.add()
			f.pass(1000 * time.Hour)
			f.stored(e, "the job")
			f.lease()
		}),
		newTest("far away", "A deadline may be in any year of four digits.", func(f *fixture) {
			e := f.add(func(e *pawl.Envelope) { e.Deadline = time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC) })
			near := f.add(within(time.Minute), after(time.Hour)).ID
			f.stored(e, "the job")
			f.pass(time.Minute)
			equal(f, f.must(near).State, pawl.Dead, "state of one with a deadline that is near")
			l := f.lease()
			f.sameTime(l.Deadline, e.Deadline, "deadline in the lease")
			f.release(l)
			f.stored(e, "the job after release")
		}),
		restartTest("is stored", "The deadline is part of the job. It stays in the lease, through every transition, and over a "+
			"restart.", func(f *fixture) {
			e := f.add(within(time.Hour))
			f.stored(e, "the job")
			l := f.lease()
			f.same(l.Envelope, e, "the lease")
			f.release(l)
			f.restart()
			f.stored(e, "the job after a restart")
			f.pass(time.Hour)
			f.expired(e.ID, e.Deadline, "after a restart")
		}),
	)
	return append(tests, alarmTests()...)
}
