package queuetest

import (
	"strings"
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
			"A fetch that skips all the jobs there are continues to wait, or ends as a fetch that found nothing.", func(f *fixture) {
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
