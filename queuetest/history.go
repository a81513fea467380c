package queuetest

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// cut tests that an error text is cut to its limit.
func cut(name, text string) test {
	return newTest("texts, "+name, "A text in the history has at most 4 KiB. A longer text is truncated and stays valid "+
		"UTF-8.", func(f *fixture) {
		id := f.add().ID
		f.ok(f.q.Settle(f.Context(), f.lease().Nack(0, errors.New(text))), "nack")
		history := f.must(id).History
		equal(f, len(history), 1, "entries")
		got := history[0].Error
		if len(text) <= pawl.MaxErrorText {
			equal(f, got, text, "text")
			return
		}
		if len(got) > pawl.MaxErrorText || len(got) < pawl.MaxErrorText-16 {
			f.Fatalf("a text of %d bytes was cut to %d", len(text), len(got))
		}
		equal(f, utf8.ValidString(got), utf8.ValidString(text), "valid UTF-8")
		const whole = pawl.MaxErrorText - 16 // the rest may say that the text was cut
		equal(f, strings.HasPrefix(text, got[:whole]), true, "it begins like the text")
	})
}

// traced is an error with a stack, as a worker makes of a panic.
type traced string

func (t traced) Error() string      { return "panic: oh" }
func (t traced) StackTrace() string { return string(t) }

func historyTests() []test {
	const limit = pawl.MaxErrorText
	return []test{
		cut("none", ""),
		cut("short", "boom"),
		cut("at the limit", strings.Repeat("x", limit)),
		cut("a byte more", strings.Repeat("x", limit+1)),
		cut("two-byte characters", strings.Repeat("ü", limit)),
		cut("three-byte characters", strings.Repeat("€", limit)),
		cut("four-byte characters", strings.Repeat("😀", limit)),
		cut("not even text", strings.Repeat("\xff", limit+1)),
		cut("nothing but the middle of characters", strings.Repeat("\x80", limit+1)),
		newTest("keeps both ends",
			"History keeps the first 100 failures and the last 100. Failures counts all of them.", func(f *fixture) {
				id := f.add(func(e *pawl.Envelope) { e.MaxRetries = pawl.MaxMaxRetries }).ID
				var all []pawl.Failure
				for n := 1; n <= 205; n++ {
					f.pass(time.Second)
					cause := fmt.Sprint("failure ", n)
					f.ok(f.q.Settle(f.Context(), f.lease().Nack(0, errors.New(cause))), "nack")
					all = append(all, pawl.Failure{Attempt: n, At: time.Now(), Error: cause})
					if n == 1 || n >= 199 && n <= 202 || n == 205 {
						want := all
						if n > 200 {
							want = append(all[:100:100], all[n-100:]...)
						}
						f.hasHistory(f.must(id), want, n)
					}
				}
			}),
		newTest("travels along",
			"A dead job has its reason, origin, attempts, time, and history. A retry keeps the history and appends to it.", func(f *fixture) {
				start := time.Now()
				at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
				id := f.add(on("q")).ID
				f.pass(time.Second)
				f.nack(f.lease("q"), 0)
				f.pass(time.Second)
				f.abandon(f.lease("q"))
				want := []pawl.Failure{{Attempt: 1, At: at(1), Error: "boom"}, {Attempt: 2, At: at(2), Error: "boom"}}
				e := f.must(id)
				f.hasHistory(e, want, 2)
				equal(f, e.Origin, "q", "origin")
				equal(f, e.Attempts, 2, "attempts")
				equal(f, e.Death.Reason, pawl.ReasonExhausted, "reason")
				f.sameTime(e.Death.At, at(2), "time of death")
				f.pass(time.Second)
				f.retry(id, false)
				f.hasHistory(f.must(id), want, 2)
				f.nack(f.lease("q"), 0)
				f.hasHistory(f.must(id), append(want, pawl.Failure{Attempt: 1, At: at(3), Error: "boom"}), 3)
			}),
		newTest("a stack",
			"The stack of a panic is kept beside the error of its attempt, is also truncated at 4 KiB, and survives a "+
				"restart.", func(f *fixture) {
				id := f.add().ID
				f.ok(f.q.Settle(f.Context(), f.lease().Nack(0, fmt.Errorf("tried: %w", traced("goroutine 7")))), "nack")
				f.ok(f.q.Settle(f.Context(), f.lease().Nack(0, errBoom)), "nack")
				f.ok(f.q.Settle(f.Context(), f.lease().Abandon(pawl.ReasonPermanent, traced(strings.Repeat("x", limit+1)))), "abandon")
				now := time.Now()
				want := []pawl.Failure{
					{Attempt: 1, At: now, Error: "tried: panic: oh", Stack: "goroutine 7"},
					{Attempt: 2, At: now, Error: "boom"},
					{Attempt: 3, At: now, Error: "panic: oh", Stack: ellipsis.Truncate(strings.Repeat("x", limit+1), limit)},
				}
				f.hasHistory(f.must(id), want, 3)
				if f.config.Persists {
					f.restart()
					f.hasHistory(f.must(id), want, 3)
				}
			}),
		newTest("attempts after a snooze",
			"A snooze by an attempt that began resets Attempts, because that attempt did not fail. A snooze before any "+
				"attempt counts nothing.", func(f *fixture) {
				id := f.add().ID
				f.nack(f.lease(), 0)
				f.nack(f.lease(), 0)
				f.snooze(f.lease(), 0)
				equal(f, f.must(id).Attempts, 2, "attempts after a snooze without an attempt")
				l := f.lease()
				l.Started = time.Now()
				f.snooze(l, 0)
				equal(f, f.must(id).Attempts, 0, "attempts after an attempt that snoozed")
				equal(f, f.must(id).Failures, 2, "entries of the history")
				f.nack(f.lease(), 0)
				equal(f, f.must(id).Attempts, 1, "attempts after the next failure")
			}),
		newTest("the last attempt", "The attempt number of a job that has ended is that of its last attempt.", func(f *fixture) {
			dead, done := f.add(on("dead")).ID, f.add(on("done"), kept(time.Hour)).ID
			f.nack(f.lease("dead"), 0)
			l := f.lease("dead")
			equal(f, l.Attempt(), 2, "the current attempt")
			f.abandon(l)
			equal(f, f.must(dead).Attempt(), 2, "the last attempt of a dead job")
			f.ack(f.lease("done"))
			equal(f, f.must(done).Attempt(), 1, "the last attempt of a completed job")
			f.retry(dead, true)
			equal(f, f.must(dead).Attempt(), 3, "the next attempt of a job that was retried")
			unrun := f.add(on("unrun")).ID
			f.cancel(unrun)
			equal(f, f.must(unrun).Attempt(), 0, "the last attempt of a job that never ran")
		}),
		newTest("only failures", "History has failed attempts only: no release, no snooze, and no crash that the job "+
			"survived.", func(f *fixture) {
			id := f.add().ID
			f.release(f.lease())
			f.snooze(f.lease(), 0)
			f.expire(f.lease())
			f.hasHistory(f.must(id), nil, 0)
		}),
	}
}

func (f *fixture) hasHistory(e *pawl.Envelope, want []pawl.Failure, failures int) {
	f.Helper()
	equal(f, len(e.History), len(want), "entries in the history")
	for i, failure := range e.History {
		if !sameFailure(failure, want[i]) {
			f.Fatalf("entry %d of the history is %v, want %v", i, failure, want[i])
		}
	}
	equal(f, e.Failures, failures, "failures in all")
}

// clearing lets a job fail, leases its retry, and ends that lease in some way.
func clearing(name string, end func(*fixture, *pawl.Lease)) test {
	return newTest("cleared by "+name,
		"BackoffSince is set from a failed attempt until its retry ends. Release, snooze, crash, ack, abandon, and retry "+
			"clear it.", func(f *fixture) {
			id := f.add(kept(time.Hour)).ID
			f.nack(f.lease(), time.Minute)
			f.due(time.Minute)
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
					f.sameTime(l.BackoffSince, time.Time{}, "backoff before the first attempt")
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
			f.due(time.Hour)
			l := f.lease()
			f.sameTime(l.BackoffSince, time.Time{}, "backoff of the first lease")
			f.snooze(l, time.Minute)
			f.due(time.Minute)
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
