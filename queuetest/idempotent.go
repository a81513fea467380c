package queuetest

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

// done makes a job with the idempotency key succeed now.
func (f *fixture) done(key string, change ...func(*pawl.Envelope)) {
	f.Helper()
	e := f.add(append(change, effect(key))...)
	l := f.lease(e.Queue)
	equal(f, l.ID, e.ID, "job")
	f.ack(l)
}

// skips requires that a fetch leases nothing, and that it removes a job.
func (f *fixture) skips(id pawl.ID, what string) {
	f.Helper()
	equal(f, len(f.fetch(9)), 0, "jobs to fetch "+what)
	equal(f, f.job(id) == nil, true, "the job is gone "+what)
}

// ofKey changes a job for add into one with a kind and an idempotency key.
func ofKey(kind, key string) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.Kind, e.IdempotencyKey = kind, key }
}

func ttl(d time.Duration) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.IdempotencyTTL = d }
}

func idempotentTests() []test {
	const skip = "A fetch that reaches a job whose key is done removes the job. The job is not granted, and no attempt counts."
	tests := []test{
		newTest("skip", skip, func(f *fixture) {
			before := f.add(of("k"), effect("x"), after(time.Minute)).ID
			f.done("x")
			e := f.add(effect("x"))
			f.stored(e, "a job whose key is done") // until a fetch comes
			equal(f, f.must(before).State, pawl.Delayed, "state of a job that is not due")
			f.skips(e.ID, "after the success")
			equal(f, f.must(before).State, pawl.Delayed, "state of a job that is not due, after a fetch")
			f.pass(time.Minute)
			f.skips(before, "when it is due")
		}),
		newTest("skip among others", "A skipped job takes no place in a fetch.", func(f *fixture) {
			f.done("x")
			f.add(of("x"), effect("x"))
			f.addKinds("a")
			f.add(ofKey("k", "x"))
			f.addKinds("b")
			f.add(ofKey("k", "x"), priority(5))
			f.addKinds("c")
			equal(f, kinds(f.fetch(2)), "xa", "jobs of a fetch of two")
			equal(f, kinds(f.fetch(2)), "bc", "jobs of the next")
			equal(f, len(f.list(pawl.Filter{Kind: "k"})), 0, "jobs with the key that are left")
		}),
		newTest("skip of many", "A fetch finds a job behind any number of skipped jobs.", func(f *fixture) {
			f.done("x")
			batch := newBatch(1500, effect("x"))
			f.enqueue(batch...)
			id := f.add().ID
			equal(f, f.leases(1)[0].ID, id, "job")
			equal(f, len(f.fetch(9)), 0, "more jobs")
			equal(f, len(f.list(pawl.Filter{})), 1, "jobs left")
		}),
		newTest("skip and fetches that wait",
			"A fetch that skips all the jobs there are continues to wait, or ends as a fetch that found nothing.", func(f *fixture) {
				f.done("x")
				leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
				id := f.add(effect("x")).ID
				f.waits(call, "after the skip")
				f.pass(0)
				equal(f, f.job(id) == nil, true, "the job is gone")
				e := f.add()
				f.ack(f.gets(call, leases, e.ID, "fetch"))
				for _, wait := range []pawl.Wait{pawl.WaitNot, pawl.WaitDrained, pawl.WaitFinished} {
					f.add(effect("x"))
					_, call := f.fetching(f.Context(), pawl.Request{Max: 1, Wait: wait})
					f.ends(call, pawl.ErrEmpty, waits[wait])
				}
			}),
		newTest("skip of a job with a past", skip+" A job with a retention becomes completed, as after a success.", func(f *fixture) {
			e := f.add(effect("x"), kept(time.Hour), func(e *pawl.Envelope) { e.Payload = make([]byte, 3000) })
			f.nack(f.lease(), time.Minute)
			f.done("x")
			f.pass(time.Minute)
			want := f.must(e.ID)
			equal(f, want.State, pawl.Ready, "state")
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			got := f.must(e.ID)
			want.State, want.Completed = pawl.Completed, time.Now()
			want.BackoffSince = got.BackoffSince // which does not apply to a completed job
			f.same(got, want, "the completed job")
			f.pass(time.Hour - 1)
			equal(f, f.must(e.ID).State, pawl.Completed, "state before its end")
			f.pass(1)
			equal(f, f.job(e.ID) == nil, true, "the completed job is gone")
		}),
		newTest("skip and the counts", "A skipped job leaves the counts.", func(f *fixture) {
			f.done("x")
			f.add(effect("x"))
			f.add(effect("x"), kept(time.Hour))
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 2}, "the enqueues")
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Completed: 1}, "the fetch")
		}),
		newTest("skip and unique keys", "A skipped job frees its unique key.", func(f *fixture) {
			f.done("x")
			id := f.add(effect("x"), unique("key")).ID
			f.keyIsOf(id, "before the skip")
			f.skips(id, "after the success")
			f.keyIsFree("after the skip")
		}),
		newTest("an ID once more", "A copy of a job whose key is done does not run again.", func(f *fixture) {
			e := f.add(effect("x"))
			f.ack(f.lease())
			f.enqueue(e)
			f.skips(e.ID, "after the success")
		}),
		newTest("a dead job that is retried", "If the key of a dead job became done in the meantime, the job does not "+
			"run after a retry.", func(f *fixture) {
			id := f.held(pawl.Dead, effect("x"))
			f.done("x")
			equal(f, f.must(id).State, pawl.Dead, "state of the dead job")
			f.retry(id, true)
			f.skips(id, "after the retry")
		}), impossible("a long idempotency key", effect(strings.Repeat("x", pawl.MaxKeyBytes+1))),
		impossible("a negative time for a success", ttl(-1)),
	}
	tests = append(tests, doneTests()...)
	tests = append(tests, besideTests()...)
	return append(tests, passedTests()...)
}

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

// keysOf returns the idempotency keys of leases, with - for none.
func keysOf(leases []*pawl.Lease) (text string) {
	for _, l := range leases {
		if l.IdempotencyKey == "" {
			text += "-"
		}
		text += l.IdempotencyKey
	}
	return text
}

// neverBeside has many fetchers take batches of jobs with few keys. The jobs fail until
// they are dead, or succeed in the end.
func neverBeside(name string, succeed bool) test {
	return newTest("many at once, and "+name,
		"Two jobs of one kind and key are never leased at the same time, whoever fetches. After a success, no job of the "+
			"key runs.", func(f *fixture) {
			const jobs, keys, fetchers, runs = 96, 6, 16, 3
			batch := newBatch(jobs)
			for i, e := range batch {
				e.IdempotencyKey, e.Queue = fmt.Sprint(i%keys), []string{"a", "b"}[i/keys%2]
			}
			f.enqueue(batch...)
			var held sync.Map // by key
			var started, acked atomic.Int32
			request := pawl.Request{Queues: []string{"a", "b"}, Max: 5}
			f.drain([]*fixture{f}, fetchers, request, func(q pawl.Queue, i int, leases []*pawl.Lease) {
				for _, l := range leases {
					started.Add(1)
					if other, twice := held.LoadOrStore(l.IdempotencyKey, l.ID); twice {
						f.Errorf("jobs %v and %v of key %s are leased at once", other, l.ID, l.IdempotencyKey)
					}
				}
				<-time.After(time.Duration(1+i%3) * time.Millisecond)
				for _, l := range leases {
					held.Delete(l.IdempotencyKey)
					end := l.Abandon(pawl.ReasonExhausted, errBoom)
					switch {
					case l.Attempts < runs-1 && i%4 == 3:
						end = l.Nack(time.Millisecond, errBoom)
					case l.Attempts < runs-1:
						end = l.Nack(0, errBoom)
					case succeed:
						acked.Add(1)
						end = l.Ack()
					}
					if err := q.Settle(f.Context(), end); err != nil {
						f.Errorf("settle: %v", err)
					}
				}
			})
			left := f.list(pawl.Filter{})
			if succeed {
				equal(f, acked.Load(), keys, "jobs that succeeded")
				equal(f, len(left), 0, "jobs left")
				return
			}
			equal(f, started.Load(), jobs*runs, "attempts that started")
			equal(f, len(left), jobs, "dead jobs")
			for _, e := range left {
				equal(f, e.State, pawl.Dead, "state")
				equal(f, e.Attempts, runs, "attempts")
			}
		})
}
