package queuetest

import (
	"context"
	"errors"
	"time"

	"github.com/gopawl/pawl"
)

// transition is one verb for a leased job and what it changes. It may change nothing
// else.
type transition struct {
	name, rule string
	do         func(*fixture, *pawl.Lease)
	state      pawl.State // "" for gone
	changes    func(e *pawl.Envelope, now time.Time)
}

var transitions = []transition{{
	"ack", "Ack removes a job whose attempt succeeded.",
	(*fixture).ack,
	"", nil,
}, {
	"nack", "Nack with delay 0 counts an attempt, keeps the cause, and makes the job ready at once.",
	func(f *fixture, l *pawl.Lease) { f.nack(l, 0) },
	pawl.Ready, func(e *pawl.Envelope, now time.Time) { failed(e, now, "boom"); e.NotBefore, e.BackoffSince = now, now },
}, {
	"nack with a delay", "Nack with a delay counts an attempt, keeps the cause, and makes the job ready after the delay.",
	func(f *fixture, l *pawl.Lease) { f.nack(l, time.Minute) },
	pawl.Delayed, func(e *pawl.Envelope, now time.Time) {
		failed(e, now, "boom")
		e.NotBefore, e.BackoffSince = now.Add(time.Minute), now
	},
}, {
	"nack with a negative delay", "A negative delay counts as no delay.",
	func(f *fixture, l *pawl.Lease) { f.nack(l, -time.Hour) },
	pawl.Ready, func(e *pawl.Envelope, now time.Time) { failed(e, now, "boom"); e.NotBefore, e.BackoffSince = now, now },
}, {
	"nack without a cause", "A failure without a cause also counts an attempt and has an entry in the history.",
	func(f *fixture, l *pawl.Lease) { f.ok(f.q.Settle(f.Context(), l.Nack(0, nil)), "nack") },
	pawl.Ready, func(e *pawl.Envelope, now time.Time) { failed(e, now, ""); e.NotBefore, e.BackoffSince = now, now },
}, {
	"abandon, exhausted", "Abandon counts an attempt, keeps the cause, and makes the job dead with its reason.",
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
	"abandon, poison", "Abandon counts one attempt and adds one entry to the history, whatever the reason.",
	func(f *fixture, l *pawl.Lease) {
		f.ok(f.q.Settle(f.Context(), l.Abandon(pawl.ReasonPoison, errBoom)), "abandon")
	},
	pawl.Dead, func(e *pawl.Envelope, now time.Time) {
		failed(e, now, "boom")
		e.Death = &pawl.Death{Reason: pawl.ReasonPoison, At: now}
	},
}, {
	"release", "Release counts no attempt and uses no retry.",
	(*fixture).release,
	pawl.Ready, func(*pawl.Envelope, time.Time) {},
}, {
	"snooze", "Snooze counts no attempt and makes the job ready after the delay.",
	func(f *fixture, l *pawl.Lease) { f.snooze(l, time.Minute) },
	pawl.Delayed, func(e *pawl.Envelope, now time.Time) { e.NotBefore = now.Add(time.Minute) },
}, {
	"snooze without a delay", "A snooze without a delay makes the job ready at once.",
	func(f *fixture, l *pawl.Lease) { f.snooze(l, 0) },
	pawl.Ready, func(e *pawl.Envelope, now time.Time) { e.NotBefore = now },
}, {
	"snooze with a negative delay", "A negative delay counts as no delay.",
	func(f *fixture, l *pawl.Lease) { f.snooze(l, -time.Hour) },
	pawl.Ready, func(e *pawl.Envelope, now time.Time) { e.NotBefore = now },
}}

// failed applies a failed attempt to a job.
func failed(e *pawl.Envelope, now time.Time, cause string) {
	e.Attempts++
	e.Failures++
	e.History = append(e.History, pawl.Failure{Attempt: e.Attempts, At: now, Error: cause})
}

// settleTests apply each verb to the same job: it failed once, then crashed once, and
// is leased.
func settleTests() (tests []test) {
	for _, tr := range transitions {
		tests = append(tests,
			newTest(tr.name, tr.rule+" It ends the lease, resets the crashes, and changes nothing else.", func(f *fixture) {
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
		newTest("extend", "Extend changes only the expiry.", func(f *fixture) {
			l, before := f.seasoned()
			equal(f, len(f.extend(l)), 0, "leases lost")
			f.same(f.must(l.ID), before, "the job")
		}),
		newTest("expiry", "Reap makes the job ready with one crash more. It keeps the attempts and the time since when the "+
			"job is ready.", func(f *fixture) {
			l, before := f.seasoned()
			f.expire(l)
			want := *before
			want.State, want.LeasedSince = pawl.Ready, time.Time{}
			want.Crashes++
			f.same(f.must(l.ID), &want, "the job")
		}),
		newTest("total attempts",
			"Attempts grows by one for each failure, and not for an attempt that did not settle.", func(f *fixture) {
				f.add(func(e *pawl.Envelope) { e.MaxRetries = 3 })
				for n := range 4 {
					f.release(f.lease())
					l := f.lease()
					equal(f, l.Attempts, n, "attempts")
					equal(f, l.Attempt(), n+1, "the current attempt")
					equal(f, l.LastAttempt(), n == 3, "the last attempt")
					f.nack(l, 0)
				}
			}),
	)
}

// seasoned leases a job for the third time, one second ago, and describes its state.
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

// verb is a way to end a lease.
type verb struct {
	name string
	end  func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error

	// next is the state of the job after the verb, or "" if the job is gone.
	next pawl.State
}

// snoozed is the delay of the snooze among the verbs.
const snoozed = time.Minute

var verbs = []verb{
	{"ack", func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Ack()) }, ""},
	{"nack", func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Nack(0, errBoom)) }, pawl.Ready},
	{"abandon", func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error {
		return q.Settle(ctx, l.Abandon(pawl.ReasonPermanent, errBoom))
	}, pawl.Dead},
	{"release", func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Release()) }, pawl.Ready},
	{"snooze", func(ctx context.Context, q pawl.Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Snooze(snoozed)) }, pawl.Delayed},
}

// end ends a lease by one of the verbs.
func (f *fixture) end(v verb, l *pawl.Lease) {
	f.Helper()
	f.ok(v.end(f.Context(), f.q, l), v.name)
}

// Short forms of the verbs that must succeed.

func (f *fixture) ack(l *pawl.Lease) {
	f.Helper()
	f.ok(f.q.Settle(f.Context(), l.Ack()), "ack")
}

func (f *fixture) nack(l *pawl.Lease, delay time.Duration) {
	f.Helper()
	f.ok(f.q.Settle(f.Context(), l.Nack(delay, errBoom)), "nack")
}

func (f *fixture) abandon(l *pawl.Lease) {
	f.Helper()
	f.ok(f.q.Settle(f.Context(), l.Abandon(pawl.ReasonExhausted, errBoom)), "abandon")
}

func (f *fixture) release(l *pawl.Lease) {
	f.Helper()
	f.ok(f.q.Settle(f.Context(), l.Release()), "release")
}

func (f *fixture) snooze(l *pawl.Lease, delay time.Duration) {
	f.Helper()
	f.ok(f.q.Settle(f.Context(), l.Snooze(delay)), "snooze")
}

func (f *fixture) extend(leases ...*pawl.Lease) (lost []*pawl.Lease) {
	f.Helper()
	lost, err := f.q.Extend(f.Context(), leases...)
	f.ok(err, "extend")
	return lost
}

func (f *fixture) reap() int {
	f.Helper()
	n, err := f.q.Reap(f.Context())
	f.ok(err, "reap")
	return n
}

func (f *fixture) cancel(id pawl.ID) {
	f.Helper()
	f.ok(f.canceller().Cancel(f.Context(), id), "cancel")
}

func (f *fixture) retry(id pawl.ID, keepAttempts bool) {
	f.Helper()
	f.ok(f.retrier().Retry(f.Context(), id, keepAttempts), "retry")
}
