package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// rival lets a dead letter be retried after another job took its key.
func rival(state pawl.State) test {
	return newTest("retry beside one that is "+string(state),
		"Retry gives ErrConflict while another job has the unique key, in a state that blocks the dead one; "+
			"without that it takes the key back.", func(f *fixture) {
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
					f.Fatalf("the key of a dead letter was not taken")
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

// holderTests are about who has a unique key.
func holderTests() (tests []test) {
	const keeps = "A job has its key until it is removed, or until another takes it: no move frees it."
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
		tests = append(tests,
			newTest("after a restart, "+string(state), "Who has a key is durable.", func(f *fixture) {
				f.needRestart()
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
			}),
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
		newTest("after its record has gone", "The record of a success has its key until it goes.", func(f *fixture) {
			id := f.held(pawl.Completed, unique("key"))
			f.pass(time.Hour - 1)
			f.keyIsOf(id, "while the record is kept")
			f.pass(1)
			f.keyIsFree("after its time")
		}),
		newTest("after a delete", "What is deleted has no key.", func(f *fixture) {
			for _, state := range []pawl.State{pawl.Dead, pawl.Completed} {
				id := f.held(state, unique("key"))
				f.keyIsOf(id, "before the delete")
				f.remove(id)
				f.keyIsFree("after the delete")
			}
		}),
		newTest("after a cancel", "A job that was cancelled is a dead letter: it blocks those who name that state.", func(f *fixture) {
			id := f.add(unique("key")).ID
			f.cancel(id)
			f.keyIsOf(id, "after the cancel")
			f.stored(f.add(unique("key"), answer(pawl.Reject)), "the next job")
		}),
		newTest("after its deadline", "A job that expired is a dead letter: it blocks those who name that state.", func(f *fixture) {
			id := f.add(unique("key"), within(time.Minute), after(time.Hour)).ID
			f.pass(time.Minute)
			f.keyIsOf(id, "after the deadline")
			f.stored(f.add(unique("key"), answer(pawl.Reject)), "the next job")
		}),
		newTest("the last that took it",
			"One job has the key: the one that took it last. What becomes of those before it is nothing to the key.", func(f *fixture) {
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
		newTest("the last is gone", "A job that is removed leaves its key free, also where one lives that had it before.", func(f *fixture) {
			first := f.add(unique("key")).ID
			f.add(unique("key", pawl.Dead), priority(1))
			f.ack(f.leases(1)[0])
			e := f.add(unique("key"), answer(pawl.Reject))
			f.stored(e, "the third job")
			f.keyIsOf(e.ID, "which it took")
			equal(f, f.must(first).State, pawl.Ready, "state of the first")
		}),
		newTest("whose states count", "Whether a job blocks is said by the newcomer's states, not by its own.", func(f *fixture) {
			id := f.add(unique("key", pawl.Dead)).ID
			equal(f, f.add(unique("key")).ID, id, "the job that has the key")
			f.stored(f.add(unique("key", pawl.Delayed), answer(pawl.Reject)), "one that a ready job does not block")
		}),
		newTest("retry of the one that has it", "A dead letter is not in its own way.", func(f *fixture) {
			id := f.held(pawl.Dead, unique("key", pawl.States()...))
			f.retry(id, true)
			f.keyIsOf(id, "after the retry")
			f.ack(f.lease())
			f.keyIsFree("when it is gone")
		}),
		newTest("retry of several", "Of the dead letters of one key one is alive at a time.", func(f *fixture) {
			first := f.held(pawl.Dead, unique("key"))
			second := f.held(pawl.Dead, unique("key"))
			f.retry(first, false)
			f.keyIsOf(first, "after its retry")
			f.is(f.retrier().Retry(f.Context(), second, false), pawl.ErrConflict, "retry of the second")
			f.ack(f.lease())
			f.retry(second, false)
			f.keyIsOf(second, "after its retry")
		}),
		newTest("a dead letter that has it no more", "A job that is removed leaves the key to the one that took it since.", func(f *fixture) {
			first := f.held(pawl.Dead, unique("key"))
			second := f.add(unique("key")).ID
			f.remove(first)
			f.keyIsOf(second, "after the delete of the first")
		}),
	)
}
