package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// The table of nack and abandon: what becomes of a job, its attempts, and
// its signature. Each engine of the table passes these cases.

// returns leases a signed job, and requires its attempts and its signature.
func (f *fixture) returns(k *pawl.Keyring, id pawl.ID, attempts int, when string) *pawl.Lease {
	f.Helper()
	l := f.lease()
	equal(f, l.ID, id, "job "+when)
	equal(f, l.Attempts, attempts, "attempts "+when)
	equal(f, l.Attempt(), attempts+1, "the attempt "+when)
	equal(f, string(l.Payload), "payload", "payload "+when)
	f.verifies(k, l.Envelope, when)
	return l
}

// nowIn requires the number of jobs in each state, where the queue counts them.
func (f *fixture) nowIn(want pawl.Counts, when string) {
	f.Helper()
	if f.config.Counts != nil {
		equal(f, f.counts()[pawl.DefaultQueue], want, "counts "+when)
	}
}

func requeueTests() []test {
	return []test{
		newTest("nack without a delay",
			"Nack without a delay makes the job ready at once, with one attempt more and its signature.", func(f *fixture) {
				k := f.keyring()
				id := f.signed(k).ID
				for attempts := range 3 {
					f.nack(f.returns(k, id, attempts, "after nacks"), 0)
					f.nowIn(pawl.Counts{Ready: 1}, "after nacks")
				}
			}),
		newTest("nack with a delay",
			"Nack with a delay makes the job ready at its time and not before, with one attempt more and its signature.", func(f *fixture) {
				k := f.keyring()
				id := f.signed(k).ID
				f.nack(f.returns(k, id, 0, "at first"), time.Hour)
				due := time.Now().Add(time.Hour)
				f.nowIn(pawl.Counts{Delayed: 1}, "after the nack")
				equal(f, len(f.fetch(9)), 0, "jobs to fetch after the nack")
				f.until(due)
				equal(f, len(f.fetch(9)), 0, "jobs to fetch before the time")
				f.due(time.Until(due))
				f.ack(f.returns(k, id, 1, "at its time"))
				f.nowIn(pawl.Counts{}, "after the ack")
			}),
		newTest("abandon",
			"Abandon makes the job dead. It keeps its reason, its attempts, its history, and its signature. It is never "+
				"fetched again unless it is retried.", func(f *fixture) {
				k := f.keyring()
				id := f.signed(k).ID
				f.nack(f.returns(k, id, 0, "at first"), 0)
				f.abandon(f.returns(k, id, 1, "after the nack"))
				f.nowIn(pawl.Counts{Dead: 1}, "after the abandon")
				f.pass(time.Hour)
				equal(f, len(f.fetch(9)), 0, "jobs to fetch")
				e := f.must(id)
				equal(f, e.State, pawl.Dead, "state")
				equal(f, e.Death.Reason, pawl.ReasonExhausted, "reason")
				equal(f, e.Attempts, 2, "attempts")
				equal(f, len(e.History), 2, "failures in the history")
				f.verifies(k, e, "that is dead")
				f.retry(id, false)
				f.ack(f.returns(k, id, 0, "after the retry"))
			}),
		newTest("reap",
			"A lease that expires makes the job ready with no attempt more and with its signature. Its late holder changes nothing.", func(f *fixture) {
				k := f.keyring()
				id := f.signed(k).ID
				late := f.returns(k, id, 0, "at first")
				f.expire(late)
				l := f.returns(k, id, 0, "after the expiry")
				for _, v := range verbs {
					f.is(v.end(f.Context(), f.q, late), pawl.ErrLeaseLost, "the late "+v.name)
					f.nowIn(pawl.Counts{Leased: 1}, "after the late "+v.name)
				}
				equal(f, len(f.extend(late)), 1, "leases lost")
				f.ack(l)
				f.nowIn(pawl.Counts{}, "after the ack")
			}),
		newTest("release and snooze",
			"Release and snooze count no attempt. A job that ran before its snooze counts attempts anew. Its signature holds.", func(f *fixture) {
				k := f.keyring()
				id := f.signed(k).ID
				f.nack(f.returns(k, id, 0, "at first"), 0)
				f.release(f.returns(k, id, 1, "after the nack"))
				f.snooze(f.returns(k, id, 1, "after the release"), time.Hour)
				f.nowIn(pawl.Counts{Delayed: 1}, "after the snooze")
				f.due(time.Hour)
				l := f.returns(k, id, 1, "after the snooze of a job that did not run")
				l.Started = time.Now()
				f.snooze(l, 0)
				f.ack(f.returns(k, id, 0, "after the snooze of a job that ran"))
			}),
	}
}
