package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// replaceTests cover what is left of a replaced job, and IDs.
func replaceTests() []test {
	const keepsID = "A job that replaces another gets its ID, whatever ID it was given. Nothing else of the other job is left."
	return []test{
		newTest("replace of a job with a past", keepsID, func(f *fixture) {
			id := f.add(unique("key"), priority(5), func(e *pawl.Envelope) {
				e.Payload, e.Headers, e.Timeout = make([]byte, 3000), map[string]string{"h": "v"}, time.Hour
			}).ID
			f.nack(f.lease(), 0)
			f.nack(f.lease(), 0)
			f.expire(f.lease())
			f.pass(time.Second)
			e := newcomer("new", answer(pawl.Replace), priority(-1))
			f.enqueue(e)
			equal(f, e.ID, id, "ID")
			f.stored(e, "the new job")
			f.nack(f.lease(), 0)
			f.hasHistory(f.must(id), []pawl.Failure{{Attempt: 1, At: time.Now(), Error: "boom"}}, 1)
		}),
		newTest("replace by a job with an ID", keepsID, func(f *fixture) {
			for _, named := range []func(held, taken pawl.ID) pawl.ID{
				func(_, _ pawl.ID) pawl.ID { return pawl.NewID(time.Now()) },
				func(held, _ pawl.ID) pawl.ID { return held },
				func(_, taken pawl.ID) pawl.ID { return taken },
			} {
				f.fresh(Settings{})
				other := f.must(f.add(of("other")).ID)
				id := f.add(unique("key")).ID
				e := newcomer("new", answer(pawl.Replace), func(e *pawl.Envelope) { e.ID = named(id, other.ID) })
				f.enqueue(e)
				equal(f, e.ID, id, "ID")
				f.stored(e, "the new job")
				f.same(f.must(other.ID), other, "the other job")
				equal(f, len(f.list(pawl.Filter{})), 2, "jobs")
			}
		}),
		newTest("use existing by a job with an ID",
			"Only a stored job takes an ID. A job that is not stored conflicts with none and gets the ID of the job that "+
				"has the key.", func(f *fixture) {
				other := f.add(of("other")).ID
				id := f.add(unique("key")).ID
				for _, named := range []pawl.ID{pawl.NewID(time.Now()), id, other} {
					e := newcomer("in vain", func(e *pawl.Envelope) { e.ID = named })
					equal(f, f.enqueue(e)[0], pawl.Enqueued{ID: id, Existing: true}, "what is returned")
				}
				equal(f, len(f.list(pawl.Filter{})), 2, "jobs")
			}),
		newTest("an ID that is taken", "A job whose key is free still conflicts with a job that has its ID.", func(f *fixture) {
			dead := f.held(pawl.Dead, unique("key"))
			unchanged := f.unchanged()
			for _, a := range answers {
				e := newcomer("new", answer(a.Conflict), func(e *pawl.Envelope) { e.ID = dead })
				f.is(f.try(e), pawl.ErrConflict, a.name)
			}
			unchanged("after the refusals")
		}),
		newTest("an envelope once more",
			"An envelope whose unique key was taken can be enqueued again. If the key is free then, the job gets an ID "+
				"of its own.", func(f *fixture) {
				other := f.add(unique("key")).ID
				e := newcomer("again")
				first, err := f.q.Enqueue(f.Context(), e)
				f.ok(err, "enqueue")
				equal(f, first[0], pawl.Enqueued{ID: other, Existing: true}, "what is returned while the key is taken")
				f.ack(f.lease())
				equal(f, f.enqueue(e)[0].Existing, false, "Existing, with the key free")
				equal(f, e.ID != other, true, "the ID is one of its own")
				f.stored(e, "the job")
			}),
		newTest("the place of what replaced another",
			"A job that replaces another has the place of a new job, by its own priority, time, and sequence.", func(f *fixture) {
				f.add(of("a"), unique("key"), priority(1))
				f.addKinds("b")
				f.add(of("a"), unique("key"), answer(pawl.Replace))
				f.addKinds("c")
				equal(f, kinds(f.fetch(9)), "bac", "order")
			}),
		newTest("a lease of what was replaced",
			"A stale holder stays stale, also when another job has the ID and is leased.", func(f *fixture) {
				f.add(unique("key"))
				old := f.lease()
				f.release(old)
				f.enqueue(newcomer("new", answer(pawl.Replace)))
				stale := func() {
					unchanged := f.unchanged()
					for _, v := range verbs {
						f.is(v.end(f.Context(), f.q, old), pawl.ErrLeaseLost, v.name)
					}
					equal(f, len(f.extend(old)), 1, "leases lost")
					unchanged("after the stale calls")
				}
				stale()
				l := f.lease()
				stale()
				f.ack(l)
			}),
		newTest("a fetch that waits", "A job that replaces a job which was not ready goes to a waiting fetch.", func(f *fixture) {
			for _, state := range []pawl.State{pawl.Delayed, pawl.Dead} {
				f.fresh(Settings{})
				id := f.held(state, unique("key"))
				leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
				f.enqueue(newcomer("in vain", unique("key", pawl.States()...)))
				f.waits(call, "after an enqueue that stored nothing")
				f.enqueue(newcomer("new", unique("key", state), answer(pawl.Replace)))
				f.ends(call, nil, "fetch")
				equal(f, (*leases)[0].ID, id, "job")
				equal(f, string((*leases)[0].Payload), "new", "payload")
			}
		}),
		newTest("a drain", "A drain ends when a job that is not ready replaces the last ready job.", func(f *fixture) {
			f.add(unique("key"))
			f.expire(f.lease())
			_, call := f.fetching(f.Context(), pawl.Request{Max: 1, Ahead: 1, Wait: pawl.WaitDrained})
			f.waits(call, "while a suspect is ready")
			f.enqueue(newcomer("new", answer(pawl.Replace), after(time.Hour)))
			f.ends(call, pawl.ErrEmpty, "fetch")
		}),
	}
}
