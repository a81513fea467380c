package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// clearing lets a job fail, leases its retry, and ends that lease in some way.
func clearing(name string, end func(*fixture, *pawl.Lease)) test {
	return newTest("cleared by "+name,
		"BackoffSince is set from a failed attempt until its retry ends. Release, snooze, crash, ack, abandon, and retry "+
			"clear it.", func(f *fixture) {
			id := f.add(kept(time.Hour)).ID
			f.nack(f.lease(), time.Minute)
			f.pass(time.Minute)
			l := f.lease()
			equal(f, l.BackoffSince.IsZero(), false, "the lease of the retry has a backoff")
			end(f, l)
			e := f.must(id)
			f.sameTime(e.BackoffSince, time.Time{}, "backoff after "+name)
		})
}

func backoffTests() (tests []test) {
	for _, v := range verbs {
		if v.name != "nack" {
			tests = append(tests, clearing(v.name, func(f *fixture, l *pawl.Lease) { f.end(v, l) }))
		}
	}
	for _, delay := range []time.Duration{0, -time.Hour, 1, time.Hour} {
		tests = append(tests,
			newTest("after a nack with the delay "+delay.String(),
				"A nack records when the failed attempt ended, whatever the delay. The lease of the retry reports this "+
					"time.", func(f *fixture) {
					id := f.add().ID
					f.pass(time.Second)
					l := f.lease()
					f.sameTime(l.BackoffSince, time.Time{}, "backoff before the first run")
					f.pass(time.Second)
					failed := time.Now()
					f.nack(l, delay)
					f.sameTime(f.must(id).BackoffSince, failed, "backoff after the failure")
					f.pass(max(delay, 0) + time.Second)
					f.sameTime(f.must(id).BackoffSince, failed, "backoff of the job that is due")
					l = f.lease()
					f.sameTime(l.BackoffSince, failed, "backoff of the lease")
					f.extend(l)
					f.sameTime(f.must(id).BackoffSince, failed, "backoff while it is leased")
				}),
		)
	}
	return append(tests, clearing("an expiry", (*fixture).expire),
		clearing("a restart", func(f *fixture, _ *pawl.Lease) { f.restart() }).needing(alone),
		clearing("a retry by hand", func(f *fixture, l *pawl.Lease) {
			f.abandon(l)
			f.retry(l.ID, true)
		}),
		newTest("of the last failure", "A second failure starts the backoff again.", func(f *fixture) {
			id := f.add().ID
			for range 3 {
				f.nack(f.lease(), time.Minute)
				f.sameTime(f.must(id).BackoffSince, time.Now(), "backoff")
				f.pass(time.Hour)
			}
		}),
		restartTest("over a restart", "After a restart, a job still waits for its retry, and its backoff still starts at the "+
			"failure.", func(f *fixture) {
			id := f.add().ID
			failed := time.Now()
			f.nack(f.lease(), time.Hour)
			f.restart()
			f.sameTime(f.must(id).BackoffSince, failed, "backoff")
			f.pass(time.Hour)
			f.sameTime(f.lease().BackoffSince, failed, "backoff of the lease")
		}),
		newTest("of no failure", "A job that did not fail has no backoff, however long it waited.", func(f *fixture) {
			f.add(after(time.Hour))
			f.pass(time.Hour)
			l := f.lease()
			f.sameTime(l.BackoffSince, time.Time{}, "backoff of the first lease")
			f.snooze(l, time.Minute)
			f.pass(time.Minute)
			f.sameTime(f.lease().BackoffSince, time.Time{}, "backoff of the next lease")
		}),
		newTest("not from outside",
			"Enqueue ignores the backoff, completion, and cancel fields of an envelope.", func(f *fixture) {
				id := f.add(func(e *pawl.Envelope) {
					e.BackoffSince, e.Completed, e.Cancelled = time.Now(), time.Now(), true
				}).ID
				e := f.must(id)
				f.sameTime(e.BackoffSince, time.Time{}, "backoff")
				f.sameTime(e.Completed, time.Time{}, "when it was completed")
				equal(f, e.Cancelled, false, "cancelled")
			}),
	)
}
