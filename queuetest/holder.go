package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// rival lets a dead job be retried after another job took its key.
func rival(state pawl.State) test {
	return newTest("retry beside one that is "+string(state),
		"Retry returns ErrConflict while another job has the unique key in a state that blocks the dead job. Otherwise the "+
			"dead job takes the key back.", func(f *fixture) {
			f.retrier() // or skip
			for _, blocks := range []bool{true, false} {
				f.fresh(Settings{})
				states := []pawl.State{state}
				if !blocks {
					states = nil
					for _, s := range pawl.States() {
						if s != state {
							states = append(states, s)
						}
					}
				}
				dead := f.held(pawl.Dead, unique("key", states...))
				other := f.held(state, unique("key"))
				if dead == other {
					f.Fatalf("the key of a dead job was not taken")
				}
				if blocks {
					unchanged := f.unchanged()
					f.is(f.retrier().Retry(f.Context(), dead, false), pawl.ErrConflict, "retry")
					unchanged("after the refusal")
					f.keyIsOf(other, "after the refusal")
					continue
				}
				f.retry(dead, false)
				equal(f, f.must(dead).State, pawl.Ready, "state")
				equal(f, f.must(other).State, state, "state of the other")
				f.keyIsOf(dead, "after the retry")
			}
		})
}

// holderTests cover which job has a unique key.
func holderTests() (tests []test) {
	const keeps = "A job has its key until it is removed or another job takes the key. No transition frees it."
	for _, v := range verbs {
		tests = append(tests,
			newTest("after "+v.name, keeps, func(f *fixture) {
				id := f.held(pawl.Ready, unique("key"))
				f.end(v, f.lease())
				if v.next == "" {
					f.keyIsFree("after " + v.name)
					return
				}
				f.keyIsOf(id, "after "+v.name)
				f.pass(snoozed)
				f.keyIsOf(id, "when its time came")
			}),
		)
	}
	for _, state := range pawl.States() {
		tests = append(tests, rival(state))
		kept := persists
		if state == pawl.Leased {
			kept = alone // or the job stays leased
		}
		tests = append(tests,
			newTest("after a restart, "+string(state), "The owner of a key is durable.", func(f *fixture) {
				first := f.held(pawl.Dead, unique("key"))
				id := f.held(state, unique("key"))
				f.restart()
				f.keyIsOf(id, "after the restart")
				f.pass(time.Second)
				f.enqueue(newcomer("new", unique("key", pawl.States()...), answer(pawl.Replace)))
				equal(f, string(f.must(id).Payload), "new", "payload of what was replaced")
				f.restart()
				equal(f, string(f.must(id).Payload), "new", "payload after one more restart")
				f.keyIsOf(id, "after one more restart")
				equal(f, f.must(first).State, pawl.Dead, "state of the one that had it before")
			}).needing(kept),
		)
	}
	return append(tests,
		newTest("after an expiry", keeps, func(f *fixture) {
			id := f.add(unique("key")).ID
			for range 5 {
				f.crash(id)
				f.keyIsOf(id, "after a crash")
			}
			equal(f, f.must(id).State, pawl.Dead, "state")
		}),
		newTest("after the completed job was removed", "A completed job has its unique key until it is removed.", func(f *fixture) {
			id := f.held(pawl.Completed, unique("key"))
			f.pass(time.Hour - 1)
			f.keyIsOf(id, "while the completed job is kept")
			f.pass(1)
			f.keyIsFree("after its time")
		}),
		newTest("after a delete", "A deleted job has no key.", func(f *fixture) {
			for _, state := range []pawl.State{pawl.Dead, pawl.Completed} {
				id := f.held(state, unique("key"))
				f.keyIsOf(id, "before the delete")
				f.remove(id)
				f.keyIsFree("after the delete")
			}
		}),
		newTest("after a cancel", "A cancelled job is dead. It blocks jobs whose UniqueIn names that state.", func(f *fixture) {
			id := f.add(unique("key")).ID
			f.cancel(id)
			f.keyIsOf(id, "after the cancel")
			f.stored(f.add(unique("key"), answer(pawl.Reject)), "the next job")
		}),
		newTest("after its deadline", "An expired job is dead. It blocks jobs whose UniqueIn names that state.", func(f *fixture) {
			id := f.add(unique("key"), within(time.Minute), after(time.Hour)).ID
			f.pass(time.Minute)
			f.keyIsOf(id, "after the deadline")
			f.stored(f.add(unique("key"), answer(pawl.Reject)), "the next job")
		}),
		newTest("the last that took it",
			"The job that took the key last has it. What happens to earlier owners does not change that.", func(f *fixture) {
				f.add(unique("key"))
				second := f.add(unique("key", pawl.Dead), answer(pawl.Reject)).ID
				f.keyIsOf(second, "while both are ready")
				leases := f.leases(2)
				f.ack(leases[0])
				f.keyIsOf(second, "when the first is gone")
				f.nack(leases[1], 0)
				f.keyIsOf(second, "when it failed")
				f.ack(f.lease())
				f.keyIsFree("when both are gone")
			}),
		newTest("the last is gone", "The removal of a job frees its key, even if an earlier owner still exists.", func(f *fixture) {
			first := f.add(unique("key")).ID
			f.add(unique("key", pawl.Dead), priority(1))
			f.ack(f.leases(1)[0])
			e := f.add(unique("key"), answer(pawl.Reject))
			f.stored(e, "the third job")
			f.keyIsOf(e.ID, "which it took")
			equal(f, f.must(first).State, pawl.Ready, "state of the first")
		}),
		newTest("whose states count", "The states of the new job decide whether a job blocks it, not that job's own states.", func(f *fixture) {
			id := f.add(unique("key", pawl.Dead)).ID
			equal(f, f.add(unique("key")).ID, id, "the job that has the key")
			f.stored(f.add(unique("key", pawl.Delayed), answer(pawl.Reject)), "one that a ready job does not block")
		}),
		newTest("retry of the one that has it", "A dead job does not block its own retry.", func(f *fixture) {
			id := f.held(pawl.Dead, unique("key", pawl.States()...))
			f.retry(id, true)
			f.keyIsOf(id, "after the retry")
			f.ack(f.lease())
			f.keyIsFree("when it is gone")
		}),
		newTest("retry of several", "At most one of several dead jobs of one key can be retried at a time.", func(f *fixture) {
			first := f.held(pawl.Dead, unique("key"))
			second := f.held(pawl.Dead, unique("key"))
			f.retry(first, false)
			f.keyIsOf(first, "after its retry")
			f.is(f.retrier().Retry(f.Context(), second, false), pawl.ErrConflict, "retry of the second")
			f.ack(f.lease())
			f.retry(second, false)
			f.keyIsOf(second, "after its retry")
		}),
		newTest("a dead job that lost its key", "The removal of an earlier owner leaves the key with the job that "+
			"took it later.", func(f *fixture) {
			first := f.held(pawl.Dead, unique("key"))
			second := f.add(unique("key")).ID
			f.remove(first)
			f.keyIsOf(second, "after the delete of the first")
		}),
	)
}
