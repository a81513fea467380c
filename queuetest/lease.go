package queuetest

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

var leaseTests = []test{
	newTest("ends after its length",
		"A lease lasts as long as the setting says, not a nanosecond less. Then the queue reaps it by itself.", func(f *fixture) {
			id := f.add().ID
			l := f.lease()
			equal(f, l.Length, 10*time.Second, "length")
			if f.config.Reduced.Looks == 0 {
				f.sameTime(l.Expires, time.Now().Add(10*time.Second), "expiry")
			}
			f.pass(10*time.Second - 1)
			equal(f, f.must(id).State, pawl.Leased, "state before the expiry")
			f.pass(1)
			equal(f, f.must(id).State, pawl.Ready, "state at the expiry")
		}).with(Settings{Lease: 10 * time.Second}),
	newTest("an expired job goes to a fetch that waits",
		"The queue reaps expired leases by itself and grants their jobs again.", func(f *fixture) {
			id := f.add().ID
			l := f.lease()
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
			f.waits(call, "while the lease lasts")
			f.await(call)
			f.onTime(l.Expires, "the time of the fetch")
			equal(f, (*leases)[0].ID, id, "job")
			equal(f, (*leases)[0].Crashes, 1, "crashes")
		}),
	newTest("extend renews",
		"Extend renews a lease for its full length from now, and does not change the Lease value.", func(f *fixture) {
			id := f.add().ID
			l := f.lease()
			expires := l.Expires
			for range 5 {
				f.pass(20 * time.Second)
				equal(f, len(f.extend(l)), 0, "leases lost")
				f.sameTime(l.Expires, expires, "the expiry in the caller's value")
			}
			f.pass(l.Length - 1)
			equal(f, f.must(id).State, pawl.Leased, "state before the expiry")
			f.pass(1)
			equal(f, f.must(id).State, pawl.Ready, "state at the expiry")
			equal(f, f.must(id).Crashes, 1, "crashes")
		}),
	newTest("extend returns the lost leases", "Extend renews the leases that still hold and returns those that are lost.", func(f *fixture) {
		ids := f.addKinds("a", "b", "c", "d")
		leases := f.leases(4)
		f.ack(leases[1])
		forged := &pawl.Lease{Envelope: leases[2].Envelope, Token: leases[2].Token + 1}
		f.pass(20 * time.Second)
		lost := f.extend(leases[1], leases[0], forged, leases[3])
		if !slices.Equal(lost, []*pawl.Lease{leases[1], forged}) {
			f.Fatalf("lost: %v, want the acked and the forged lease", lost)
		}
		f.pass(10 * time.Second)
		equal(f, f.must(ids[0]).State, pawl.Leased, "state of a job whose lease was extended")
		equal(f, f.must(ids[2]).State, pawl.Ready, "state of a job whose token was forged")
		equal(f, f.must(ids[3]).State, pawl.Leased, "state of a job whose lease was extended")
		equal(f, len(f.extend()), 0, "leases lost of none")
	}),
	newTest("an extended lease still settles", "Extend keeps the token.", func(f *fixture) {
		f.add()
		l := f.lease()
		f.pass(20 * time.Second)
		f.extend(l)
		f.pass(20 * time.Second)
		f.ack(l)
	}),
	newTest("each at its own time",
		"Leases expire one by one. An extended lease expires later than the leases that were granted before it.", func(f *fixture) {
			ids := f.addKinds("a", "b", "c")
			first := f.leases(1)[0]
			f.pass(time.Second)
			f.leases(1)
			f.pass(time.Second)
			f.extend(first)
			f.pass(time.Second)
			f.leases(1)
			f.pass(28 * time.Second)
			for i, state := range []pawl.State{pawl.Leased, pawl.Ready, pawl.Leased} {
				equal(f, f.must(ids[i]).State, state, "state after 31 s of the job "+[]string{"a", "b", "c"}[i])
			}
			f.pass(time.Second)
			equal(f, f.must(ids[0]).State, pawl.Ready, "state of a after 32 s")
			equal(f, f.must(ids[2]).State, pawl.Leased, "state of c after 32 s")
		}),
	newTest("beside a delayed job", "A lease expires at its time, whatever else waits for a later time.", func(f *fixture) {
		f.add(after(time.Hour))
		id := f.add().ID
		l := f.lease()
		leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
		f.await(call)
		f.onTime(l.Expires, "the time of the fetch")
		equal(f, (*leases)[0].ID, id, "job")
	}),
	newTest("reap takes back what has expired alone",
		"Reap takes back every expired lease, and no lease that still holds or was settled.", func(f *fixture) {
			f.addKinds("a", "b", "c")
			leases := f.leases(2)
			f.ack(leases[0])
			equal(f, f.reap(), 0, "leases reaped before the expiry")
			f.pass(time.Second)
			held := f.leases(1)[0]
			<-time.After(leases[1].Length - time.Second)
			if n := f.reap(); n > 1 { // the queue may have reaped it first
				f.Fatalf("%d leases were reaped, one had expired", n)
			}
			equal(f, f.must(leases[1].ID).State, pawl.Ready, "state of the expired one")
			equal(f, f.must(leases[1].ID).Crashes, 1, "crashes of the expired one")
			equal(f, f.must(held.ID).State, pawl.Leased, "state of the other")
			equal(f, f.reap(), 0, "leases reaped once more")
		}),
	newTest("many expire at once", "Every expired lease is taken back, however many there are.", func(f *fixture) {
		batch := newBatch(1200)
		f.enqueue(batch...)
		leases := f.leases(len(batch))
		f.expire(leases[0])
		f.leases(len(batch))
	}),
}

// clock is a wall clock that a case sets. It continues to run between two steps.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())).Round(0) }

func (c *clock) step(d time.Duration) { c.ahead.Add(int64(d)) }

// clocked replaces the queue with one that follows a new clock.
func (f *fixture) clocked() *clock {
	f.Helper()
	c := new(clock)
	f.fresh(Settings{Now: c.now})
	return c
}

// stepped sets the clock while jobs are leased, one for each way to end a lease.
func stepped(step time.Duration) test {
	return newTest("a step by "+step.String(),
		"Leases expire on monotonic time, so a step of the wall clock expires none. A job that becomes ready afterwards is "+
			"ready by the new time.", func(f *fixture) {
			c := f.clocked()
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
					c := f.clocked()
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
			c := f.clocked()
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
				c := f.clocked()
				f.add(of("b"), after(24*time.Hour))
				f.add(of("a"), after(time.Hour))
				c.step(25 * time.Hour)
				equal(f, kinds(f.fetch(9)), "ab", "order")
			}),
	)
}

// isStale requires that the queue refuses every use of a lease, and that nothing changes.
func (f *fixture) isStale(l *pawl.Lease) {
	f.Helper()
	unchanged := f.unchanged()
	for _, v := range verbs {
		f.is(v.end(f.Context(), f.q, l), pawl.ErrLeaseLost, v.name)
	}
	lost := f.extend(l)
	equal(f, len(lost), 1, "leases lost")
	equal(f, lost[0], l, "lease lost")
	unchanged("after the stale calls")
}

// stale makes a lease stale in some way. Lose may put another in its place.
func stale(how string, lose func(f *fixture, l *pawl.Lease)) test {
	return newTest(how,
		"A stale holder gets ErrLeaseLost from every settlement and changes nothing, whatever happened to the job since.", func(f *fixture) {
			f.add(func(e *pawl.Envelope) { e.Payload = make([]byte, 2000) })
			l := f.lease()
			lose(f, l)
			f.isStale(l)
		})
}

func fenceTests() []test {
	var tests []test
	for _, v := range verbs {
		tests = append(tests, stale("after "+v.name, func(f *fixture, l *pawl.Lease) { f.end(v, l) }))
	}
	return append(tests,
		stale("failed, and leased by another", func(f *fixture, l *pawl.Lease) { f.nack(l, 0); f.lease() }),
		stale("released, and leased by another", func(f *fixture, l *pawl.Lease) { f.release(l); f.lease() }),
		stale("expired", (*fixture).expire),
		stale("expired, and leased by another", func(f *fixture, l *pawl.Lease) { f.expire(l); f.lease() }),
		stale("poison", func(f *fixture, l *pawl.Lease) {
			for range 4 {
				f.expire(l)
				*l = *f.lease()
			}
			f.expire(l)
		}),
		stale("retried", func(f *fixture, l *pawl.Lease) { f.abandon(l); f.retry(l.ID, false) }),
		stale("enqueued anew under its ID", func(f *fixture, l *pawl.Lease) {
			f.ack(l)
			f.pass(f.config.Reduced.IDs)
			f.add(func(e *pawl.Envelope) { e.ID = l.ID })
			f.lease()
		}),
		stale("a guess", func(_ *fixture, l *pawl.Lease) { l.Token ^= 1 }),
		stale("the token of another job", func(f *fixture, l *pawl.Lease) {
			f.add()
			l.Token = f.lease().Token
		}),
		stale("a job that never was", func(_ *fixture, l *pawl.Lease) { l.Envelope = &pawl.Envelope{ID: pawl.NewID(time.Now())} }),
		stale("a restart", func(f *fixture, _ *pawl.Lease) { f.restart() }).needing(alone),
		stale("a restart, and leased by another", func(f *fixture, _ *pawl.Lease) { f.restart(); f.lease() }).needing(alone),
		newTest("the new holder goes on", "A stale holder cannot end the lease of the new holder.", func(f *fixture) {
			f.add()
			old := f.lease()
			f.expire(old)
			l := f.lease()
			f.is(f.q.Settle(f.Context(), old.Ack()), pawl.ErrLeaseLost, "the stale ack")
			f.ack(l)
		}),
	)
}
