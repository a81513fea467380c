package queuetest

import (
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// done has a job with the idempotency key succeed now.
func (f *fixture) done(key string, change ...func(*pawl.Envelope)) {
	f.Helper()
	e := f.add(append(change, effect(key))...)
	l := f.lease(e.Queue)
	equal(f, l.ID, e.ID, "job")
	f.ack(l)
}

// skips requires that a fetch finds nothing to lease, and that a job is gone after it.
func (f *fixture) skips(id pawl.ID, what string) {
	f.Helper()
	equal(f, len(f.fetch(9)), 0, "jobs to fetch "+what)
	equal(f, f.job(id) == nil, true, "the job is gone "+what)
}

// ofKey makes a job of add one with a kind and an idempotency key.
func ofKey(kind, key string) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.Kind, e.IdempotencyKey = kind, key }
}

func ttl(d time.Duration) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.IdempotencyTTL = d }
}

func idempotentTests() []test {
	const skip = "A fetch that comes to a job whose key was done removes it: it is not handed out, and no attempt is counted."
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
		newTest("skip among others", "A job that is skipped takes no place in a fetch.", func(f *fixture) {
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
		newTest("skip of many", "A fetch finds a job behind any number of those that it skips.", func(f *fixture) {
			f.done("x")
			batch := newBatch(1500)
			for _, e := range batch {
				e.IdempotencyKey = "x"
			}
			f.enqueue(batch...)
			id := f.add().ID
			equal(f, f.leases(1)[0].ID, id, "job")
			equal(f, len(f.fetch(9)), 0, "more jobs")
			equal(f, len(f.list(pawl.Filter{})), 1, "jobs left")
		}),
		newTest("skip and fetches that wait",
			"A fetch that skips all there is goes on waiting, or ends as one that found nothing.", func(f *fixture) {
				f.done("x")
				leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
				id := f.add(effect("x")).ID
				f.waits(call, "after the skip")
				f.pass(0)
				equal(f, f.job(id) == nil, true, "the job is gone")
				e := f.add()
				f.ends(call, nil, "fetch")
				equal(f, (*leases)[0].ID, e.ID, "job")
				f.ack((*leases)[0])
				for _, wait := range []pawl.Wait{pawl.WaitNot, pawl.WaitDrained, pawl.WaitFinished} {
					f.add(effect("x"))
					_, call := f.fetching(f.Context(), pawl.Request{Max: 1, Wait: wait})
					f.ends(call, pawl.ErrEmpty, waits[wait])
				}
			}),
		newTest("skip of a job with a past", skip+" Its record is kept like that of a success, where it asks for that.", func(f *fixture) {
			e := f.add(effect("x"), kept(time.Hour), func(e *pawl.Envelope) { e.Payload = make([]byte, 3000) })
			f.nack(f.lease(), time.Minute)
			f.done("x")
			f.pass(time.Minute)
			want := f.must(e.ID)
			equal(f, want.State, pawl.Ready, "state")
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			got := f.must(e.ID)
			want.State, want.Completed = pawl.Completed, time.Now()
			want.BackoffSince = got.BackoffSince // which says nothing about a record
			f.same(got, want, "the record")
			f.pass(time.Hour - 1)
			equal(f, f.must(e.ID).State, pawl.Completed, "state before its end")
			f.pass(1)
			equal(f, f.job(e.ID) == nil, true, "the record is gone")
		}),
		newTest("skip and the counts", "A job that is skipped is counted no more.", func(f *fixture) {
			f.done("x")
			f.add(effect("x"))
			f.add(effect("x"), kept(time.Hour))
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 2}, "the enqueues")
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Completed: 1}, "the fetch")
		}),
		newTest("skip and unique keys", "A job that is skipped leaves its unique key free.", func(f *fixture) {
			f.done("x")
			id := f.add(effect("x"), unique("key")).ID
			f.keyIsOf(id, "before the skip")
			f.skips(id, "after the success")
			f.keyIsFree("after the skip")
		}),
		newTest("an ID once more", "A job that is enqueued again, as a copy of one that is done, does not run again.", func(f *fixture) {
			e := f.add(effect("x"))
			f.ack(f.lease())
			f.enqueue(e)
			f.skips(e.ID, "after the success")
		}),
		newTest("a dead letter that is retried", "What was done meanwhile is not done by a retry of a dead letter.", func(f *fixture) {
			id := f.held(pawl.Dead, effect("x"))
			f.done("x")
			equal(f, f.must(id).State, pawl.Dead, "state of the dead letter")
			f.retry(id, true)
			f.skips(id, "after the retry")
		}), impossible("a long idempotency key", effect(strings.Repeat("x", pawl.MaxKeyBytes+1))),
		impossible("a negative time for a success", ttl(-1)),
	}
	tests = append(tests, doneTests()...)
	tests = append(tests, besideTests()...)
	return append(tests, passedTests()...)
}
