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
			batch := newBatch(1500)
			for _, e := range batch {
				e.IdempotencyKey = "x"
			}
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
