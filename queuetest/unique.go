package queuetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// answers are what an enqueue may do about a unique key that is taken.
var answers = []struct {
	name string
	pawl.Conflict
}{
	{"use existing", pawl.UseExisting}, {"reject", pawl.Reject}, {"replace", pawl.Replace},
}

// newcomer returns a job for the unique key "key". The function change may modify it.
func newcomer(payload string, change ...func(*pawl.Envelope)) *pawl.Envelope {
	e := &pawl.Envelope{Kind: "k", Payload: []byte(payload), UniqueKey: "key", MaxRetries: 3}
	for _, fn := range change {
		fn(e)
	}
	return e
}

// stored requires that the queue holds a job that equals its envelope after a
// successful enqueue, and has nothing of another job.
func (f *fixture) stored(e *pawl.Envelope, what string) {
	f.Helper()
	want := *e
	if want.State = pawl.Ready; e.NotBefore.After(time.Now()) {
		want.State = pawl.Delayed
	}
	got := f.must(e.ID)
	f.same(got, &want, what)
	e.Seq = got.Seq
}

// keyIsOf requires that a job that any state blocks gets the existing job with this ID.
func (f *fixture) keyIsOf(id pawl.ID, what string) {
	f.Helper()
	unchanged := f.unchanged()
	e := newcomer("in vain", unique("key", pawl.States()...))
	equal(f, f.enqueue(e)[0], pawl.Enqueued{ID: id, Existing: true}, "the job that has the key "+what)
	unchanged("what was stored " + what)
}

// keyIsFree requires that no job has the key. The key stays free.
func (f *fixture) keyIsFree(what string) {
	f.Helper()
	e := newcomer("probe", unique("key", pawl.States()...), answer(pawl.Reject), func(e *pawl.Envelope) { e.Priority = 127 })
	f.ok(f.try(e), "enqueue for the key "+what)
	l := f.leases(1)[0]
	equal(f, l.ID, e.ID, "the job that took the key "+what)
	f.ack(l)
}

// onto enqueues a job whose key another job has, and checks the result.
func (f *fixture) onto(holder, e *pawl.Envelope, blocked bool) {
	f.Helper()
	unchanged := f.unchanged()
	done, err := f.put(f.q, e)
	switch {
	case !blocked:
		f.ok(err, "enqueue where nothing blocks")
		equal(f, done[0], pawl.Enqueued{ID: e.ID}, "what is returned")
		f.stored(e, "the new job")
		f.same(f.must(holder.ID), holder, "the other job")
		equal(f, len(f.list(pawl.Filter{})), 2, "jobs")
		f.keyIsOf(e.ID, "after another took it")
	case e.OnConflict == pawl.UseExisting:
		f.ok(err, "enqueue of what there is")
		equal(f, done[0], pawl.Enqueued{ID: holder.ID, Existing: true}, "what is returned")
		unchanged("after an enqueue of what there is")
	case e.OnConflict == pawl.Reject || holder.State == pawl.Leased:
		f.is(err, pawl.ErrConflict, "enqueue")
		unchanged("after the refusal")
	default:
		f.ok(err, "replace")
		equal(f, done[0], pawl.Enqueued{ID: holder.ID}, "what is returned")
		f.replaced(e)
	}
}

// replaced requires that a job that replaced another is the only one and equals a new
// job, and that nothing of the other job comes back.
func (f *fixture) replaced(e *pawl.Envelope) {
	f.Helper()
	f.stored(e, "the job that replaced another")
	f.sameTime(e.Created, time.Now(), "when it was created")
	equal(f, len(f.list(pawl.Filter{})), 1, "jobs")
	f.keyIsOf(e.ID, "after it was replaced")
	f.pass(3 * time.Hour)
	l := f.lease()
	equal(f, l.ID, e.ID, "the job that runs")
	equal(f, string(l.Payload), string(e.Payload), "its payload")
	equal(f, l.Attempts, 0, "its attempts")
	f.ack(l)
	equal(f, len(f.list(pawl.Filter{})), 0, "jobs left")
}

// taken enqueues a job for the key of a job in a state, with states that block and with
// states that do not.
func taken(answer pawl.Conflict, name string, state pawl.State) test {
	others := slices.DeleteFunc(pawl.States(), func(s pawl.State) bool { return s == state })
	return newTest(name+", onto one that is "+string(state),
		"A unique key blocks while the job that took it is in one of the states of the new job: ready, delayed, and "+
			"leased, unless the new job names others. On a conflict, UseExisting returns the ID, Reject refuses, and "+
			"Replace keeps the ID but never replaces a leased job. Without a conflict, the new job is stored and takes "+
			"the key.", func(f *fixture) {
			for _, c := range []struct {
				states []pawl.State
				blocks bool
			}{
				{nil, state != pawl.Dead && state != pawl.Completed},
				{[]pawl.State{state}, true},
				{append(pawl.States(), state), true},
				{others, false},
			} {
				f.fresh(Settings{})
				holder := f.must(f.held(state, unique("key")))
				f.pass(time.Second)
				f.onto(holder, newcomer("another payload", func(e *pawl.Envelope) {
					e.UniqueIn, e.OnConflict = c.states, answer
					e.Priority, e.Delay, e.Headers = 2, time.Minute, map[string]string{"a": "header"}
				}), c.blocks)
			}
		})
}

// impossible refuses a job that a function has made invalid.
func impossible(name string, spoil func(*pawl.Envelope)) test {
	return newTest("refused, "+name,
		"Keys have at most 255 bytes, UniqueIn names states of a job, and times are not negative. NotBefore is before the "+
			"deadline.", func(f *fixture) {
			f.invalid(f.try(newcomer("", spoil)), "enqueue")
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs stored")
		})
}

func uniqueTests() (tests []test) {
	for _, a := range answers {
		for _, state := range pawl.States() {
			tests = append(tests, taken(a.Conflict, a.name, state))
		}
	}
	tests = append(tests,
		impossible("a long key", unique(strings.Repeat("x", pawl.MaxKeyBytes+1))),
		impossible("no state", unique("key", pawl.Ready, "running")),
		impossible("states without a key", unique("", pawl.Ready)),
		impossible("no answer", answer(pawl.Replace+1)),
		newTest("scope",
			"A unique key belongs to one queue and one kind. It may have any bytes, and no key is mistaken for another.", func(f *fixture) {
				long := strings.Repeat("k", 255)
				scopes := [][3]string{
					{"", "k", "key"}, {"q", "k", "key"}, {"", "l", "key"}, {"", "k", "KEY"}, {"", "k", "ke"}, {"", "k", "keyy"},
					{"", "kk", "ey"}, {"", "kke", "y"}, {"q", "kk", "ey"}, {"qk", "k", "ey"}, {"qk", "ke", "y"}, {"q", "kke", "y"},
					{"", "k", "\x00key"}, {"", "k", "key\x00"}, {"", "k", "\xff"}, {"", "k", " "}, {"", "k", "k\x00key"},
					{long, long, long}, {long[1:], long, long}, {long, long[1:], long}, {long, long, long[1:]},
				}
				var ids []pawl.ID
				put := func(s [3]string, c pawl.Conflict) *pawl.Envelope {
					return f.add(func(e *pawl.Envelope) { e.Queue, e.Kind, e.UniqueKey, e.OnConflict = s[0], s[1], s[2], c })
				}
				for _, s := range scopes {
					ids = append(ids, put(s, pawl.Reject).ID)
				}
				for i, s := range scopes {
					equal(f, put(s, pawl.UseExisting).ID, ids[i], fmt.Sprintf("the job of %.20q", s))
				}
				equal(f, len(f.list(pawl.Filter{})), len(scopes), "jobs")
			}),
		newTest("no key", "Any number of jobs may have no unique key.", func(f *fixture) {
			for _, a := range answers {
				f.stored(f.add(answer(a.Conflict)), "a job without a key")
			}
			f.add(unique("key"))
			f.stored(f.add(answer(pawl.Reject)), "a job without a key beside one with a key")
			equal(f, len(f.list(pawl.Filter{})), len(answers)+2, "jobs")
		}),
		newTest("the default queue", "An empty queue name means the default queue for unique keys too.", func(f *fixture) {
			id := f.add(unique("key")).ID
			equal(f, f.add(unique("key"), func(e *pawl.Envelope) { e.Queue = pawl.DefaultQueue }).ID, id, "the job that has the key")
		}),
		restartTest("is stored",
			"The key and its states are part of the job. They stay in the lease, through every transition, and over a "+
				"restart.", func(f *fixture) {
				e := f.add(unique("key", pawl.Dead, pawl.Ready, pawl.Completed))
				f.stored(e, "the job")
				l := f.lease()
				f.same(l.Envelope, e, "the lease")
				f.release(l)
				f.stored(e, "the job after release")
				f.restart()
				f.stored(e, "the job after a restart")
			}),
		newTest("counts", "A replaced job leaves the counts, and a job that was not stored never enters them.", func(f *fixture) {
			f.enqueue(newcomer("a"))
			f.enqueue(newcomer("b"))
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 1}, "an enqueue of what there is")
			f.enqueue(newcomer("c", answer(pawl.Replace), after(time.Hour)))
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Delayed: 1}, "a replace by a later one")
			f.enqueue(newcomer("d", answer(pawl.Replace)))
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 1}, "a replace by an earlier one")
			f.abandon(f.lease())
			f.enqueue(newcomer("e", answer(pawl.Replace), unique("key", pawl.Dead)))
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 1}, "a replace of a dead job")
		}),
	)
	tests = append(tests, holderTests()...)
	tests = append(tests, replaceTests()...)
	return append(tests, keyBatchTests()...)
}

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
				f.isStale(old)
				l := f.lease()
				f.isStale(old)
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
				f.gets(call, leases, id, "fetch")
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
