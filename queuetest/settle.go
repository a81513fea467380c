package queuetest

import (
	"errors"
	"time"

	"github.com/gopawl/pawl"
)

// transition is one verb from leased, and what it changes: nothing else may.
type transition struct {
	name, rule string
	do         func(*fixture, *pawl.Lease)
	state      pawl.State // "" for gone
	changes    func(e *pawl.Envelope, now time.Time)
}

var transitions = []transition{{
	"ack", "Ack removes a job whose run succeeded.",
	(*fixture).ack,
	"", nil,
}, {
	"nack", "Nack counts an attempt, keeps the cause, and with delay 0 the job is ready at once.",
	func(f *fixture, l *pawl.Lease) { f.nack(l, 0) },
	pawl.Ready, func(e *pawl.Envelope, now time.Time) { failed(e, now, "boom"); e.NotBefore, e.BackoffSince = now, now },
}, {
	"nack with a delay", "Nack counts an attempt, keeps the cause, and the job is ready after the delay.",
	func(f *fixture, l *pawl.Lease) { f.nack(l, time.Minute) },
	pawl.Delayed, func(e *pawl.Envelope, now time.Time) {
		failed(e, now, "boom")
		e.NotBefore, e.BackoffSince = now.Add(time.Minute), now
	},
}, {
	"nack with a negative delay", "A negative delay is none.",
	func(f *fixture, l *pawl.Lease) { f.nack(l, -time.Hour) },
	pawl.Ready, func(e *pawl.Envelope, now time.Time) { failed(e, now, "boom"); e.NotBefore, e.BackoffSince = now, now },
}, {
	"nack without a cause", "A failure counts and has its place in the history, also without a cause.",
	func(f *fixture, l *pawl.Lease) { f.ok(f.q.Settle(f.Context(), l.Nack(0, nil)), "nack") },
	pawl.Ready, func(e *pawl.Envelope, now time.Time) { failed(e, now, ""); e.NotBefore, e.BackoffSince = now, now },
}, {
	"abandon, exhausted", "Abandon counts an attempt, keeps the cause, and makes the job a dead letter with its reason.",
	(*fixture).abandon,
	pawl.Dead, func(e *pawl.Envelope, now time.Time) {
		failed(e, now, "boom")
		e.Death = &pawl.Death{Reason: pawl.ReasonExhausted, At: now}
	},
}, {
	"abandon, permanent", "Abandon keeps the reason that it was given.",
	func(f *fixture, l *pawl.Lease) {
		f.ok(f.q.Settle(f.Context(), l.Abandon(pawl.ReasonPermanent, nil)), "abandon")
	},
	pawl.Dead, func(e *pawl.Envelope, now time.Time) {
		failed(e, now, "")
		e.Death = &pawl.Death{Reason: pawl.ReasonPermanent, At: now}
	},
}, {
	"abandon, poison", "Abandon counts one attempt and has one place in the history, whatever the reason.",
	func(f *fixture, l *pawl.Lease) {
		f.ok(f.q.Settle(f.Context(), l.Abandon(pawl.ReasonPoison, errBoom)), "abandon")
	},
	pawl.Dead, func(e *pawl.Envelope, now time.Time) {
		failed(e, now, "boom")
		e.Death = &pawl.Death{Reason: pawl.ReasonPoison, At: now}
	},
}, {
	"release", "Release counts nothing and burns nothing.",
	(*fixture).release,
	pawl.Ready, func(*pawl.Envelope, time.Time) {},
}, {
	"snooze", "Snooze counts nothing, and the job is ready after the delay.",
	func(f *fixture, l *pawl.Lease) { f.snooze(l, time.Minute) },
	pawl.Delayed, func(e *pawl.Envelope, now time.Time) { e.NotBefore = now.Add(time.Minute) },
}, {
	"snooze without a delay", "A snooze of no time makes the job ready at once.",
	func(f *fixture, l *pawl.Lease) { f.snooze(l, 0) },
	pawl.Ready, func(e *pawl.Envelope, now time.Time) { e.NotBefore = now },
}, {
	"snooze with a negative delay", "A negative delay is none.",
	func(f *fixture, l *pawl.Lease) { f.snooze(l, -time.Hour) },
	pawl.Ready, func(e *pawl.Envelope, now time.Time) { e.NotBefore = now },
}}

// failed is what a failed run does to a job.
func failed(e *pawl.Envelope, now time.Time, cause string) {
	e.Attempts++
	e.Failures++
	e.History = append(e.History, pawl.Failure{Attempt: e.Attempts, At: now, Error: cause})
}

// settleTests let each verb loose on the same job: it failed once, crashed once
// after that, and is leased.
func settleTests() (tests []test) {
	for _, tr := range transitions {
		tests = append(tests,
			newTest(tr.name, tr.rule+" It ends the lease, forgets crashes and changes nothing else.", func(f *fixture) {
				l, before := f.seasoned()
				tr.do(f, l)
				now := time.Now()
				got := f.job(l.ID)
				if tr.state == "" {
					if got != nil {
						f.Fatalf("the job is still there: %v", got)
					}
					return
				}
				want := *before
				want.State, want.LeasedSince, want.Crashes = tr.state, time.Time{}, 0
				tr.changes(&want, now)
				f.same(got, &want, "the job")
			}),
		)
	}
	return append(tests,
		newTest("extend", "Extend changes nothing but the expiry.", func(f *fixture) {
			l, before := f.seasoned()
			equal(f, len(f.extend(l)), 0, "leases lost")
			f.same(f.must(l.ID), before, "the job")
		}),
		newTest("expiry", "Reap returns the job to ready with a crash more, no attempt, and its ready-since.", func(f *fixture) {
			l, before := f.seasoned()
			f.expire(l)
			want := *before
			want.State, want.LeasedSince = pawl.Ready, time.Time{}
			want.Crashes++
			f.same(f.must(l.ID), &want, "the job")
		}),
		newTest("runs in all",
			"Attempts are completed runs: one more for each failure, none for a run that did not settle.", func(f *fixture) {
				f.add(func(e *pawl.Envelope) { e.MaxRetries = 3 })
				for n := range 4 {
					f.release(f.lease())
					l := f.lease()
					equal(f, l.Attempts, n, "attempts")
					equal(f, l.Attempt(), n+1, "the run under way")
					equal(f, l.LastAttempt(), n == 3, "the last run")
					f.nack(l, 0)
				}
			}),
	)
}

// seasoned leases a job for the third time, a second ago, and tells how it stands.
func (f *fixture) seasoned() (*pawl.Lease, *pawl.Envelope) {
	f.Helper()
	id := f.add(func(e *pawl.Envelope) {
		e.Priority, e.Timeout, e.Headers = -3, time.Hour, map[string]string{"trace": "1"}
		e.Payload = make([]byte, 2000)
	}).ID
	f.pass(time.Second)
	f.ok(f.q.Settle(f.Context(), f.lease().Nack(0, errors.New("first"))), "nack")
	f.pass(time.Second)
	f.expire(f.lease())
	l := f.lease()
	f.pass(time.Second)
	before := f.must(id)
	equal(f, before.State, pawl.Leased, "state")
	equal(f, before.Attempts, 1, "attempts")
	equal(f, before.Crashes, 1, "crashes")
	return l, before
}
