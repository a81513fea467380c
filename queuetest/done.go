package queuetest

import (
	"math"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// lasts tests that a success counts for a time.
func lasts(name string, given, want time.Duration) test {
	return newTest("lasts "+name,
		"A success counts from its ack for the time that the job sets, 24 h by default, and not an instant longer.", func(f *fixture) {
			f.done("x", ttl(given))
			f.pass(want - 1)
			f.skips(f.add(effect("x"), ttl(time.Hour)).ID, "just before the end")
			e := f.add(effect("x"), ttl(want))
			f.pass(1)
			equal(f, f.lease().ID, e.ID, "the job that runs at the end")
		})
}

// doneTests cover what counts as a success, and for how long.
func doneTests() []test {
	return []test{
		lasts("a day", 0, pawl.DefaultIdempotencyTTL),
		lasts("a minute", time.Minute, time.Minute),
		lasts("a nanosecond", 1, 1),
		lasts("a month", 30*24*time.Hour, 30*24*time.Hour),
		newTest("lasts for ever", "A success counts as long as its job says, up to the longest duration there is.", func(f *fixture) {
			f.done("x", ttl(math.MaxInt64))
			f.skips(f.add(effect("x")).ID, "at once")
			f.pass(1000 * time.Hour)
			f.skips(f.add(effect("x")).ID, "long after")
		}),
		newTest("of each success", "Each success counts from its own ack.", func(f *fixture) {
			f.done("x", ttl(time.Minute))
			f.pass(time.Minute)
			f.done("x", ttl(time.Hour))
			f.pass(time.Hour - 1)
			f.skips(f.add(effect("x")).ID, "before the end of the second")
			f.pass(1)
			f.done("x")
		}),
		newTest("scope",
			"An idempotency key belongs to one kind, over all queues. It may have any bytes, and no key is mistaken for "+
				"another.", func(f *fixture) {
				long := strings.Repeat("k", 255)
				f.done("key", of("k"))
				f.done(long, of(long))
				for _, other := range [][2]string{
					{"l", "key"}, {"k", "KEY"}, {"k", "ke"}, {"k", "keyy"}, {"kk", "ey"}, {"kke", "y"}, {"k", "\x00key"}, {"k", "key\x00"},
					{"k", "\xff"}, {"k", " "}, {"k", "k\x00key"}, {long[1:], long}, {long, long[1:]}, {"k", ""}, {"k", ""},
				} {
					e := f.add(ofKey(other[0], other[1]))
					l := f.lease()
					equal(f, l.ID, e.ID, "job")
					f.ack(l)
				}
				for _, queue := range []string{"", "q", "r"} {
					f.add(ofKey("k", "key"), func(e *pawl.Envelope) { e.Queue = queue })
					f.add(ofKey(long, long), func(e *pawl.Envelope) { e.Queue = queue })
				}
				equal(f, len(f.fetch(9, pawl.DefaultQueue, "q", "r")), 0, "jobs to fetch")
				equal(f, len(f.list(pawl.Filter{})), 0, "jobs left")
			}),
		newTest("only a success",
			"Only an ack by the current holder makes a key done. No other end of a lease does, and no stale ack.", func(f *fixture) {
				for _, v := range verbs[1:] {
					f.add(effect(v.name), of(v.name))
					f.end(v, f.lease())
					for _, l := range f.fetch(9) {
						f.abandon(l)
					}
					f.done(v.name, of(v.name))
				}
				f.add(of("stale"), effect("x"))
				old := f.lease()
				f.expire(old)
				f.is(f.q.Settle(f.Context(), old.Ack()), pawl.ErrLeaseLost, "a stale ack")
				equal(f, kinds(f.fetch(1)), "stale", "job")
			}),
		newTest("what the holder makes of it",
			"An ack makes done the key of the job in the queue, whatever the holder changed in its lease.", func(f *fixture) {
				f.add(effect("x"))
				l := f.lease()
				l.Envelope = &pawl.Envelope{ID: l.ID, Kind: "other", IdempotencyKey: "y", IdempotencyTTL: 1}
				f.ack(l)
				f.done("y", of("other"))
				f.pass(time.Second)
				f.skips(f.add(effect("x")).ID, "after the success")
			}),
		restartTest("is stored", "The key and its time are part of the job. They stay in the lease, through every transition, "+
			"and over a restart.", func(f *fixture) {
			e := f.add(effect("x"), ttl(time.Minute))
			f.stored(e, "the job")
			l := f.lease()
			f.same(l.Envelope, e, "the lease")
			f.release(l)
			f.restart()
			f.stored(e, "the job after a restart")
		}),
		restartTest("over a restart", "A done key is durable, and its time continues while the queue is closed.", func(f *fixture) {
			f.done("x", ttl(time.Hour))
			f.restart()
			f.skips(f.add(effect("x")).ID, "after the restart")
			e := f.add(effect("x"))
			f.close()
			f.pass(time.Hour)
			f.reopen()
			equal(f, f.lease().ID, e.ID, "the job that runs when the time is over")
		}),
	}
}
