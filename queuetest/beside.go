package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// besideTests cover jobs of one idempotency key of which one is leased. A fetch passes
// over the others.
func besideTests() (tests []test) {
	const pass = "While a job is leased, a fetch passes over the jobs of its kind and key. No other job waits behind them."
	const after = "When that lease ends without a success, the other jobs of the key can be fetched, one at a time, in " +
		"their old place in the order."
	for _, v := range verbs {
		// A failed job is behind the others now, or delayed. Any other job comes first
		// again.
		next := "b"
		switch v.name {
		case "ack":
			next = ""
		case "release":
			next = "a"
		}
		tests = append(tests,
			newTest("beside one, after "+v.name, after, func(f *fixture) {
				f.three()
				l := f.leases(1)[0]
				equal(f, payloads(f.fetch(9)), "", "jobs beside the first")
				f.pass(time.Second)
				f.end(v, l)
				equal(f, payloads(f.fetch(9)), next, "jobs after "+v.name)
			}),
			newTest("a fetch that waits, and "+v.name, after+" A waiting fetch gets the next job at once.", func(f *fixture) {
				f.three()
				l := f.leases(1)[0]
				leases, call := f.fetching(f.Context(), pawl.Request{Max: 9, Wait: pawl.WaitDrained})
				f.waits(call, "while the first is leased")
				f.pass(time.Second)
				f.end(v, l)
				if v.name == "ack" {
					f.ends(call, pawl.ErrEmpty, "fetch")
					equal(f, len(f.list(pawl.Filter{})), 0, "jobs left")
					return
				}
				f.ends(call, nil, "fetch")
				equal(f, payloads(*leases), next, "jobs")
			}),
		)
	}
	return append(tests,
		newTest("beside one, after an expiry", after, func(f *fixture) {
			f.three()
			l := f.leases(1)[0]
			f.pass(l.Length - 1)
			equal(f, payloads(f.fetch(9)), "", "jobs before the expiry")
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 9})
			f.await(call)
			f.sameTime(time.Now(), l.Expires, "the time of the fetch")
			equal(f, payloads(*leases), "a", "jobs at the expiry")
			f.expire((*leases)[0])
			equal(f, payloads(f.request(pawl.Request{Max: 9, Ahead: 9})), "b", "jobs that have not crashed")
		}),
		newTest("beside one, after a cancel", after, func(f *fixture) {
			f.three()
			l := f.leases(1)[0]
			f.cancel(l.ID)
			equal(f, payloads(f.fetch(9)), "", "jobs after the cancel")
			f.release(l)
			equal(f, payloads(f.fetch(9)), "b", "jobs after the lease")
		}),
		newTest("beside one that is extended", pass, func(f *fixture) {
			f.three()
			l := f.leases(1)[0]
			for range 5 {
				f.pass(20 * time.Second)
				f.extend(l)
				equal(f, payloads(f.fetch(9)), "", "jobs")
			}
		}),
		newTest("one of a key in a fetch", pass, func(f *fixture) {
			for _, key := range []string{"x", "y", "x", "", "y", "x", ""} {
				f.add(ofKey("k", key))
			}
			equal(f, keysOf(f.fetch(9)), "xy--", "keys of a fetch")
			equal(f, len(f.fetch(9)), 0, "jobs of the next")
		}),
		newTest("a full fetch", pass+" Jobs that are passed over take no place in the fetch.", func(f *fixture) {
			for _, key := range []string{"x", "x", "x", "y", "", "x", "z"} {
				f.add(ofKey("k", key))
			}
			equal(f, keysOf(f.fetch(2)), "xy", "keys of a fetch of two")
			equal(f, keysOf(f.fetch(2)), "-z", "keys of the next")
		}),
		newTest("beside one, in other places",
			pass+" The key belongs to a kind, on any queue and at any priority.", func(f *fixture) {
				f.add(effect("x"))
				l := f.lease()
				f.add(effect("x"), priority(100))
				f.add(effect("x"), func(e *pawl.Envelope) { e.Queue = "q" })
				f.add(ofKey("other", "x"))
				f.add(ofKey("clean", ""), func(e *pawl.Envelope) { e.Queue = "q" })
				equal(f, kinds(f.fetch(1, "q", "default")), "clean", "the first job")
				equal(f, kinds(f.fetch(9, "default", "q")), "other", "the others")
				f.release(l)
				equal(f, len(f.fetch(9, "default", "q")), 1, "jobs after the lease")
			}),
		newTest("one of a key over queues", pass, func(f *fixture) {
			for _, queue := range []string{"a", "b", "c"} {
				for range 2 {
					f.add(on(queue), ofKey("k", "x"))
				}
				f.add(on(queue))
			}
			leases := f.fetch(9, "a", "b", "c")
			equal(f, len(leases), 4, "jobs of a fetch")
			keyed := 0
			for _, l := range leases {
				if l.IdempotencyKey != "" {
					keyed++
				}
			}
			equal(f, keyed, 1, "jobs with the key")
		}),
		newTest("is ready", "A job that is passed over stays ready. It is counted as ready, and drains wait for it.", func(f *fixture) {
			f.three()
			l := f.leases(1)[0]
			unchanged := f.unchanged()
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			unchanged("after a fetch that passed over all")
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 2, Leased: 1}, "the fetch")
			f.add(effect("x"), on("q"), of("k"))
			for _, wait := range []pawl.Wait{pawl.WaitDrained, pawl.WaitFinished} {
				_, call := f.fetching(f.Context(), pawl.Request{Queues: []string{"q"}, Max: 1, Wait: wait})
				f.waits(call, waits[wait])
				defer f.ends(call, pawl.ErrEmpty, waits[wait])
			}
			f.ack(l)
		}),
		newTest("many of a key in front", pass, func(f *fixture) {
			batch := newBatch(1500, effect("x"))
			f.enqueue(batch...)
			l := f.leases(1)[0]
			id := f.add().ID
			equal(f, f.leases(1)[0].ID, id, "the job behind them")
			f.release(l)
			equal(f, f.leases(1)[0].ID, l.ID, "the job that is first again")
		}),
		aloneTest("beside one, over a restart",
			"A lease that the queue finds at open has ended. Its key is free, and one job of the key is leased at a time.", func(f *fixture) {
				f.three()
				f.leases(1)
				f.restart()
				l := f.leases(1)[0]
				equal(f, payloads([]*pawl.Lease{l}), "a", "job")
				equal(f, payloads(f.fetch(9)), "", "jobs beside it")
				f.ack(l)
				equal(f, payloads(f.fetch(9)), "", "jobs after the success")
				equal(f, len(f.list(pawl.Filter{})), 0, "jobs left")
			}), neverBeside("failures", false), neverBeside("a success", true))
}

// three adds the jobs a, b, and c of one idempotency key, one second apart.
func (f *fixture) three() {
	f.Helper()
	for _, payload := range []string{"a", "b", "c"} {
		f.add(effect("x"), func(e *pawl.Envelope) { e.Payload = []byte(payload) })
		f.pass(time.Second)
	}
}

func payloads(leases []*pawl.Lease) (text string) {
	for _, l := range leases {
		text += string(l.Payload)
	}
	return text
}

// passedOver leases the job a and has a fetch pass over b and c, which have the same
// idempotency key. The function change may modify b and c. Job b has the unique key
// "key".
func (f *fixture) passedOver(change ...func(*pawl.Envelope)) (l *pawl.Lease, b, c pawl.ID) {
	f.Helper()
	named := func(payload string) func(*pawl.Envelope) {
		return func(e *pawl.Envelope) { e.IdempotencyKey, e.Payload = "x", []byte(payload) }
	}
	f.add(named("a"))
	l = f.lease()
	f.pass(time.Second)
	b = f.add(append(change, named("b"), unique("key"))...).ID
	f.pass(time.Second)
	c = f.add(append(change, named("c"))...).ID
	equal(f, len(f.fetch(9)), 0, "jobs beside the first")
	return l, b, c
}

// leaves lets b stop being ready in some way while no job of the key is leased. Job c
// can be fetched afterwards.
func leaves(how string, away func(f *fixture, b pawl.ID)) test {
	return newTest("passed over, and the first of them "+how,
		"No job waits for a passed-over job that is gone: the next job of the key can be fetched.", func(f *fixture) {
			for _, early := range []bool{true, false} { // while a is leased, and after that
				f.fresh(Settings{})
				l, b, c := f.passedOver()
				if early {
					away(f, b)
					equal(f, f.must(c).State, pawl.Ready, "state of c")
					equal(f, len(f.fetch(9)), 0, "jobs while a is leased")
				}
				f.nack(l, 1000*time.Hour)
				if !early {
					away(f, b)
				}
				equal(f, payloads(f.fetch(9)), "c", "jobs")
			}
		})
}

// passedTests cover jobs that a fetch passed over because another job of their key was
// leased. They are ready like all others.
func passedTests() []test {
	const ready = "A job that was passed over is as ready as any other."
	return []test{
		leaves("is cancelled", (*fixture).cancel),
		leaves("is replaced", func(f *fixture, b pawl.ID) {
			e := newcomer("b", answer(pawl.Replace), after(1000*time.Hour), effect("x"))
			f.enqueue(e)
			equal(f, e.ID, b, "ID")
			f.stored(e, "the job that replaced b")
		}),
		newTest("passed over, and the first of them expires",
			"A deadline applies wherever a job waits, and the next job of the key can be fetched.", func(f *fixture) {
				l, b, c := f.passedOver(within(20 * time.Second)) // b expires a second before c
				f.pass(19 * time.Second)
				equal(f, f.must(b).State, pawl.Dead, "state of b")
				equal(f, f.must(c).State, pawl.Ready, "state of c")
				f.nack(l, time.Hour)
				equal(f, payloads(f.fetch(9)), "c", "jobs")
			}),
		newTest("passed over, and expired after that",
			"A deadline applies wherever a job waits, and the next job of the key can be fetched.", func(f *fixture) {
				l, b, c := f.passedOver(within(20 * time.Second))
				f.nack(l, time.Hour)
				f.pass(19 * time.Second)
				equal(f, f.must(b).State, pawl.Dead, "state of b")
				equal(f, payloads(f.fetch(9)), "c", "jobs")
				equal(f, f.must(c).State, pawl.Leased, "state of c")
			}),
		newTest("passed over, and past the time of the success",
			"Only a fetch checks whether a key is done. When the time of the success is over, the passed-over jobs run, one at a time.", func(f *fixture) {
				f.add(effect("x"), ttl(time.Minute))
				l := f.lease()
				f.add(effect("x"), of("k"), ttl(1), priority(1))
				f.add(effect("x"), of("k"), ttl(1))
				equal(f, len(f.fetch(9)), 0, "jobs beside the first")
				f.ack(l)
				f.pass(time.Minute)
				l = f.leases(1)[0]
				equal(f, l.Priority, 1, "priority of the next")
				equal(f, len(f.fetch(9)), 0, "jobs beside it")
				f.ack(l)
				f.pass(1)
				f.lease()
			}),
		newTest("passed over, in their places",
			"Passed-over jobs come back in their old place by priority, time, and sequence, also among new jobs.", func(f *fixture) {
				f.add(effect("x"), of("k"))
				l := f.lease()
				for _, j := range []struct {
					payload  string
					priority int8
				}{{"c", 0}, {"b", 1}, {"d", 0}, {"a", 2}} {
					f.add(effect("x"), priority(j.priority), func(e *pawl.Envelope) { e.Payload = []byte(j.payload) })
					f.pass(time.Second)
				}
				equal(f, len(f.fetch(9)), 0, "jobs beside the first")
				f.nack(l, time.Hour)
				f.add(priority(1), func(e *pawl.Envelope) { e.Payload = []byte("b2") })
				f.add(func(e *pawl.Envelope) { e.Payload = []byte("d2") })
				order := ""
				for range 6 {
					l := f.leases(1)[0]
					order += string(l.Payload) + " "
					f.abandon(l)
				}
				equal(f, order, "a b b2 c d d2 ", "order")
			}),
		newTest("passed over behind one that crashed", ready+" It does not wait for a job that must not be leased now.", func(f *fixture) {
			f.add(effect("x"), func(e *pawl.Envelope) { e.Payload = []byte("crashed") })
			f.expire(f.lease())
			f.add(effect("x"), priority(1))
			l := f.leases(1)[0]
			f.add(effect("x"), func(e *pawl.Envelope) { e.Payload = []byte("clean") })
			equal(f, len(f.fetch(9)), 0, "jobs beside the first")
			f.nack(l, time.Hour)
			equal(f, payloads(f.request(pawl.Request{Max: 9, Ahead: 9})), "clean", "jobs without an idle slot")
		}),
		newTest("passed over on other queues", ready+" A fetch from any queue returns the job of that queue.", func(f *fixture) {
			onto := func(queue string) func(*pawl.Envelope) {
				return func(e *pawl.Envelope) { e.Queue, e.IdempotencyKey = queue, "x" }
			}
			f.add(onto("a"))
			l := f.lease("a")
			for _, queue := range []string{"a", "b", "c"} {
				f.add(onto(queue))
				f.add(onto(queue))
			}
			equal(f, len(f.fetch(9, "a", "b", "c")), 0, "jobs beside the first")
			f.nack(l, time.Hour)
			for _, queue := range []string{"c", "a", "b", "b", "a", "c"} {
				l := f.leases(1, queue)[0]
				equal(f, l.Queue, queue, "queue")
				equal(f, len(f.fetch(9, "a", "b", "c")), 0, "jobs beside it")
				f.abandon(l)
			}
		}),
		newTest("passed over, and unique keys", ready+" It keeps its unique key as a ready job.", func(f *fixture) {
			f.add(effect("x"))
			l := f.lease()
			id := f.add(effect("x"), unique("key")).ID
			equal(f, len(f.fetch(9)), 0, "jobs beside the first")
			f.keyIsOf(id, "while it is passed over")
			equal(f, f.add(unique("key", pawl.Ready)).ID, id, "the job that is ready")
			f.ack(l)
			f.skips(id, "after the success")
			f.keyIsFree("after the skip")
		}),
		newTest("passed over, and listed", ready+" It is listed and counted as ready.", func(f *fixture) {
			_, b, c := f.passedOver()
			f.sameJobs(idsOf(f.list(pawl.Filter{State: pawl.Ready})), []pawl.ID{b, c}, "ready jobs")
			equal(f, len(f.list(pawl.Filter{State: pawl.Delayed})), 0, "delayed jobs")
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 2, Leased: 1}, "the fetch")
			f.is(f.retrier().Retry(f.Context(), b, false), pawl.ErrConflict, "retry")
		}),
		aloneTest("passed over, and a restart", ready+" It is ready after a restart.", func(f *fixture) {
			l, b, c := f.passedOver()
			f.restart()
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 3}, "the restart")
			f.cancel(l.ID)
			l = f.lease()
			equal(f, l.ID, b, "job")
			f.snooze(l, time.Hour)
			l = f.lease()
			equal(f, l.ID, c, "job")
			f.restart()
			equal(f, f.lease().ID, c, "job after another restart")
		}),
		newTest("passed over with a share",
			ready+" With a retry share, first attempts among them come before retries.", func(f *fixture) {
				f.add(effect("x"))
				f.nack(f.lease(), 0)
				f.add(effect("x"), priority(1))
				l := f.leases(1)[0]
				fresh := f.add(effect("x")).ID
				equal(f, len(f.fetch(9)), 0, "jobs beside the first")
				f.nack(l, time.Hour)
				leases := f.request(pawl.Request{Max: 9, RetryShare: 0.2})
				equal(f, len(leases), 1, "jobs")
				equal(f, leases[0].ID, fresh, "job")
			}),
	}
}
