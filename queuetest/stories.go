package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

var stories = []story{{
	name: "enqueue", rule: "An enqueue emits EventEnqueued for each job of the batch, in order, also for delayed jobs.",
	before: func(f *fixture) *pawl.Lease { return nil },
	happens: func(f *fixture, _ *pawl.Lease) {
		batch := newBatch(3)
		batch[1].Delay, batch[2].Queue = time.Hour, "q"
		f.enqueue(batch...)
	},
	want: "enqueued enqueued enqueued",
	look: func(f *fixture, _ *pawl.Lease, events []pawl.Event) {
		for i, e := range f.list(pawl.Filter{}) {
			equal(f, events[i].Job.ID, e.ID, "job")
			equal(f, events[i].Job.Queue, e.Queue, "queue")
			equal(f, events[i].Job.Seq, e.Seq, "sequence")
		}
	},
}, {
	name: "an enqueue that is refused", needs: batches, rule: "A call that changes nothing emits nothing.",
	happens: func(f *fixture, l *pawl.Lease) {
		f.is(f.try(&pawl.Envelope{Kind: "k"}, &pawl.Envelope{}), pawl.ErrInvalid, "enqueue")
		f.is(f.try(&pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k", ID: l.ID}), pawl.ErrConflict, "enqueue")
	},
}, {
	name: "a unique key that is taken", rule: "An enqueue that stores nothing emits nothing, also when it is refused.",
	before: func(f *fixture) *pawl.Lease { return f.lone(unique("u")) },
	happens: func(f *fixture, _ *pawl.Lease) {
		f.add(unique("u"))
		e := &pawl.Envelope{Kind: "k", UniqueKey: "u", OnConflict: pawl.Reject}
		f.is(f.try(e), pawl.ErrConflict, "enqueue")
	},
}, {
	name: "replace", rule: "A job that replaces another emits EventReplaced and no EventEnqueued.",
	before: func(f *fixture) *pawl.Lease {
		f.add(unique("u"))
		return nil
	},
	happens: func(f *fixture, _ *pawl.Lease) {
		id := f.list(pawl.Filter{})[0].ID
		equal(f, f.add(unique("u"), answer(pawl.Replace)).ID, id, "ID")
		f.add(unique("other"), answer(pawl.Replace))
	},
	want: "replaced enqueued",
	look: func(f *fixture, _ *pawl.Lease, events []pawl.Event) {
		equal(f, events[0].Job.ID, f.list(pawl.Filter{})[0].ID, "job")
	},
}, {
	name: "replace within a batch", rule: "If jobs of one batch replace one another, only the last one emits events. It also emits " +
		"EventReplaced if the queue held a job with the key before the batch.",
	before: func(f *fixture) *pawl.Lease { f.add(unique("old")); return nil },
	happens: func(f *fixture, _ *pawl.Lease) {
		batch := newBatch(4)
		for i, e := range batch {
			e.UniqueKey, e.OnConflict = []string{"new", "old"}[i%2], pawl.Replace
		}
		f.enqueue(batch...)
	},
	want: "enqueued replaced",
}, {
	name: "fetch", rule: "A fetch emits EventFetched for each lease. The event shows since when the job was due.",
	before: func(f *fixture) *pawl.Lease {
		f.add(after(time.Minute))
		f.pass(90 * time.Second)
		f.add()
		return nil
	},
	happens: func(f *fixture, _ *pawl.Lease) { f.leases(2) },
	want:    "fetched fetched",
	look: func(f *fixture, _ *pawl.Lease, events []pawl.Event) {
		equal(f, events[0].At.Sub(events[0].Job.NotBefore), 30*time.Second, "age of the job that waited")
		equal(f, events[0].Backoff, 0, "backoff of a job that did not fail")
		equal(f, events[1].At.Sub(events[1].Job.NotBefore), 0, "age of the other")
	},
}, {
	name: "a fetch for which there is no job", rule: "A fetch that leases nothing emits nothing.",
	happens: func(f *fixture, _ *pawl.Lease) { equal(f, len(f.fetch(9)), 0, "jobs") },
}, {
	name: "the fetch of a retry", rule: "The event of the fetch of a retry reports how long the job was in backoff.",
	before: func(f *fixture) *pawl.Lease {
		l := f.lone()
		f.nack(l, time.Minute)
		f.pass(time.Hour)
		return l
	},
	happens: func(f *fixture, _ *pawl.Lease) { f.lease() },
	want:    "fetched",
	look: func(f *fixture, l *pawl.Lease, events []pawl.Event) {
		f.within(events[0].Backoff, time.Hour, "backoff")
		f.within(events[0].At.Sub(events[0].Job.NotBefore), 59*time.Minute, "age")
		equal(f, events[0].Job.Attempts, 1, "attempts")
	},
}, {
	name: "ack", rule: "EventSucceeded carries the duration of the attempt and whether it timed out.",
	happens: func(f *fixture, l *pawl.Lease) { settled(f, l, (*fixture).ack) },
	want:    "succeeded",
	look:    func(f *fixture, _ *pawl.Lease, events []pawl.Event) { ofRun(f, events[0], "") },
}, {
	name: "the ack of a run that never began", rule: "An attempt without a start time has the duration 0.",
	happens: func(f *fixture, l *pawl.Lease) { f.pass(time.Second); f.ack(l) },
	want:    "succeeded",
	look:    func(f *fixture, _ *pawl.Lease, events []pawl.Event) { equal(f, events[0].Took, 0, "time") },
}, {
	name: "a record that is kept", rule: "The removal of a completed job emits nothing, because its success was already " +
		"reported.",
	before:  func(f *fixture) *pawl.Lease { return f.lone(kept(time.Hour)) },
	happens: func(f *fixture, l *pawl.Lease) { f.ack(l); f.pass(2 * time.Hour) },
	want:    "succeeded",
	look: func(f *fixture, _ *pawl.Lease, events []pawl.Event) {
		equal(f, events[0].Job.Attempts, 1, "attempts")
	},
}, {
	name: "a job without a run", rule: "A job whose idempotency key is done emits EventSkipped and nothing else.",
	before: func(f *fixture) *pawl.Lease {
		f.ack(f.lone(effect("e")))
		f.add(effect("e"))
		f.add(effect("e"), kept(time.Hour))
		return nil
	},
	happens: func(f *fixture, _ *pawl.Lease) { equal(f, len(f.fetch(9)), 0, "jobs to fetch") },
	want:    "skipped skipped",
}, {
	name: "nack", rule: "EventRetried carries the delay, the cause, the duration of the attempt, and whether it timed out.",
	happens: func(f *fixture, l *pawl.Lease) {
		settled(f, l, func(f *fixture, l *pawl.Lease) { f.nack(l, time.Minute) })
		f.pass(time.Hour) // the end of a delay emits nothing
	},
	want: "retried",
	look: func(f *fixture, _ *pawl.Lease, events []pawl.Event) {
		ofRun(f, events[0], "boom")
		equal(f, events[0].Delay, time.Minute, "delay")
		equal(f, events[0].Job.Attempts, 1, "attempts")
	},
}, {
	name: "nack without a delay", rule: "A negative delay counts as no delay.",
	happens: func(f *fixture, l *pawl.Lease) {
		f.nack(l, -time.Hour)
		f.ok(f.q.Settle(f.Context(), f.lease().Nack(0, nil)), "nack")
	},
	want: "retried fetched retried",
	look: func(f *fixture, _ *pawl.Lease, events []pawl.Event) {
		equal(f, events[0].Delay, 0, "delay")
		f.within(events[1].Backoff, 0, "backoff")
		equal(f, events[2].Cause, "", "cause")
	},
}, {
	name: "release and snooze", rule: "Release emits EventReleased, and Snooze emits EventSnoozed.",
	happens: func(f *fixture, l *pawl.Lease) {
		f.release(l)
		f.snooze(f.lease(), time.Minute)
	},
	want: "released fetched snoozed",
}, {
	name: "extend", rule: "Extend emits nothing, because it is no transition.",
	happens: func(f *fixture, l *pawl.Lease) { f.extend(l) },
}, {
	name: "an expiry", rule: "A lease that expires emits EventReaped once.",
	happens: func(f *fixture, l *pawl.Lease) {
		f.expire(l)
		f.reap()
	},
	want: "reaped",
	look: func(f *fixture, l *pawl.Lease, events []pawl.Event) { equal(f, events[0].Job.Crashes, 1, "crashes") },
}, {
	name: "the last expiry", rule: "A lease whose expiry reaches the limit of crashes emits EventReaped, then EventDied.",
	settings: Settings{MaxCrashes: 1},
	happens: func(f *fixture, l *pawl.Lease) {
		f.expire(l)
		if f.config.Reduced != (Reduced{}) { // a broker counts crashes, and the queue looks at the limit when the job comes
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
		}
	},
	want: "reaped died/poison",
}, {
	name: "a restart", needs: alone, rule: "A lease that open finds emits EventRecovered.",
	happens: func(f *fixture, _ *pawl.Lease) { f.add(); f.restart() },
	want:    "enqueued recovered",
	look:    func(f *fixture, l *pawl.Lease, events []pawl.Event) { equal(f, events[1].Job.ID, l.ID, "job") },
}, {
	name: "the last restart", needs: alone, rule: "A lease that open finds and that reaches the limit of crashes emits EventRecovered, " +
		"then EventDied.",
	settings: Settings{MaxCrashes: 1},
	happens:  func(f *fixture, _ *pawl.Lease) { f.restart(); f.restart() },
	want:     "recovered died/poison",
}, {
	name: "a deadline", rule: "A ready or delayed job that reaches its deadline emits EventDied.",
	before: func(f *fixture) *pawl.Lease {
		f.add(within(time.Minute), after(time.Hour))
		f.add(within(time.Minute))
		return nil
	},
	happens: func(f *fixture, _ *pawl.Lease) { f.pass(time.Hour) },
	want:    "died/deadline died/deadline",
}, {
	name: "an enqueue past the deadline", rule: "A job that is enqueued past its deadline emits EventEnqueued, then EventDied.",
	before: func(f *fixture) *pawl.Lease { return nil },
	happens: func(f *fixture, _ *pawl.Lease) {
		f.add(func(e *pawl.Envelope) { e.Deadline = time.Now().Add(-time.Second) })
		f.pass(time.Minute)
	},
	want: "enqueued died/deadline",
}, {
	name: "a nack past the deadline", rule: "A failure past the deadline emits EventRetried, then EventDied. Its timeout " +
		"counts once.",
	before: (*fixture).nearDeadline,
	happens: func(f *fixture, l *pawl.Lease) {
		settled(f, l, func(f *fixture, l *pawl.Lease) { f.nack(l, time.Minute) })
	},
	want: "retried died/deadline",
	look: func(f *fixture, _ *pawl.Lease, events []pawl.Event) { ofRun(f, events[0], "boom") },
}, {
	name: "a release past the deadline", rule: "The end of a lease past the deadline emits its own event, then EventDied.",
	before:  (*fixture).nearDeadline,
	happens: func(f *fixture, l *pawl.Lease) { f.pass(time.Second); f.release(l) },
	want:    "released died/deadline",
}, {
	name: "a snooze past the deadline", rule: "The end of a lease past the deadline emits its own event, then EventDied.",
	before:  (*fixture).nearDeadline,
	happens: func(f *fixture, l *pawl.Lease) { f.pass(time.Second); f.snooze(l, time.Minute) },
	want:    "snoozed died/deadline",
}, {
	name: "an expiry past the deadline", rule: "The end of a lease past the deadline emits its own event, then EventDied.",
	before:  (*fixture).nearDeadline,
	happens: func(f *fixture, l *pawl.Lease) { f.expire(l) },
	want:    "reaped died/deadline",
}, {
	name: "a restart past the deadline", needs: alone, rule: "The end of a lease past the deadline emits its own event, then EventDied.",
	before:  (*fixture).nearDeadline,
	happens: func(f *fixture, _ *pawl.Lease) { f.pass(time.Second); f.restart() },
	want:    "recovered died/deadline",
}, {
	name: "the cancel of a job that waits", rule: "A job that is cancelled while it waits emits EventDied once.",
	before: func(f *fixture) *pawl.Lease {
		for _, state := range []pawl.State{pawl.Delayed, pawl.Ready} {
			f.held(state)
		}
		return nil
	},
	happens: func(f *fixture, _ *pawl.Lease) {
		for _, e := range f.list(pawl.Filter{}) {
			f.cancel(e.ID)
			f.is(f.canceller().Cancel(f.Context(), e.ID), pawl.ErrConflict, "another cancel")
		}
	},
	want: "died/cancelled died/cancelled",
}, {
	name: "the cancel of a job that is leased", rule: "The cancel of a leased job emits EventCancelled once. The end of " +
		"its lease emits its own event.",
	happens: func(f *fixture, l *pawl.Lease) {
		f.cancel(l.ID)
		f.cancel(l.ID)
	},
	want: "cancelled",
}, {
	name: "the ack of a cancelled job", rule: "A cancelled job whose attempt succeeds emits EventSucceeded.",
	before:  (*fixture).cancelled,
	happens: func(f *fixture, l *pawl.Lease) { settled(f, l, (*fixture).ack) },
	want:    "succeeded",
	look:    func(f *fixture, _ *pawl.Lease, events []pawl.Event) { ofRun(f, events[0], "") },
}, {
	name: "the nack of a cancelled job", rule: "A cancelled job whose attempt fails emits EventDied and no EventRetried.",
	before: (*fixture).cancelled,
	happens: func(f *fixture, l *pawl.Lease) {
		settled(f, l, func(f *fixture, l *pawl.Lease) { f.nack(l, time.Minute) })
	},
	want: "died/cancelled",
	look: func(f *fixture, _ *pawl.Lease, events []pawl.Event) { ofRun(f, events[0], "boom") },
}, {
	name: "the abandon of a cancelled job", rule: "A cancelled job that is abandoned emits EventDied with the reason " +
		"cancelled, whatever the reason of the abandon.",
	before:  (*fixture).cancelled,
	happens: func(f *fixture, l *pawl.Lease) { settled(f, l, (*fixture).abandon) },
	want:    "died/cancelled",
	look:    func(f *fixture, _ *pawl.Lease, events []pawl.Event) { ofRun(f, events[0], "boom") },
}, {
	name: "the release of a cancelled job", rule: "A cancelled job that is released or snoozed emits EventDied and nothing " +
		"else.",
	before: (*fixture).cancelled, happens: (*fixture).release, want: "died/cancelled",
}, {
	name: "the snooze of a cancelled job", rule: "A cancelled job that is released or snoozed emits EventDied and nothing " +
		"else.",
	before:  (*fixture).cancelled,
	happens: func(f *fixture, l *pawl.Lease) { f.snooze(l, time.Minute); f.pass(time.Hour) },
	want:    "died/cancelled",
}, {
	name: "the expiry of a cancelled job", rule: "A cancelled job whose lease expires emits EventReaped, then EventDied.",
	before: (*fixture).cancelled, happens: (*fixture).expire, want: "reaped died/cancelled",
}, {
	name: "a restart with a cancelled job", needs: alone, rule: "A cancelled job whose lease open finds emits EventRecovered, then " +
		"EventDied.",
	before:  (*fixture).cancelled,
	happens: func(f *fixture, _ *pawl.Lease) { f.restart() },
	want:    "recovered died/cancelled",
}, {
	name: "retry", rule: "Retry of a dead job emits EventRevived.",
	before:  func(f *fixture) *pawl.Lease { l := f.lone(); f.abandon(l); return l },
	happens: func(f *fixture, l *pawl.Lease) { f.retry(l.ID, false) },
	want:    "revived",
	look: func(f *fixture, _ *pawl.Lease, events []pawl.Event) {
		equal(f, events[0].Job.Death == nil, true, "it is not dead any more")
	},
}, {
	name: "delete", rule: "Delete of a dead or completed job emits EventDeleted.",
	before: func(f *fixture) *pawl.Lease { f.held(pawl.Dead); f.held(pawl.Completed); return nil },
	happens: func(f *fixture, _ *pawl.Lease) {
		for _, e := range f.list(pawl.Filter{}) {
			f.remove(e.ID)
		}
	},
	want: "deleted deleted",
}, {
	name: "calls that change nothing", rule: "A call that changes nothing emits nothing.",
	happens: func(f *fixture, l *pawl.Lease) {
		stale := &pawl.Lease{Envelope: l.Envelope, Token: l.Token + 1000}
		for _, v := range verbs {
			f.is(v.end(f.Context(), f.q, stale), pawl.ErrLeaseLost, v.name)
		}
		id := pawl.NewID(time.Now())
		f.is(f.retrier().Retry(f.Context(), l.ID, false), pawl.ErrConflict, "retry")
		f.is(f.deleter().Delete(f.Context(), l.ID), pawl.ErrConflict, "delete")
		f.is(f.canceller().Cancel(f.Context(), id), pawl.ErrNotFound, "cancel")
		f.is(f.retrier().Retry(f.Context(), id, false), pawl.ErrNotFound, "retry")
		f.is(f.nowRunner().RunNow(f.Context(), l.ID), pawl.ErrConflict, "run now")
		f.is(f.nowRunner().RunNow(f.Context(), id), pawl.ErrNotFound, "run now")
		f.is(f.deleter().Delete(f.Context(), id), pawl.ErrNotFound, "delete")
		equal(f, f.reap(), 0, "leases reaped")
	},
}, {
	name: "pause and resume", rule: "Pause and resume emit nothing.",
	happens: func(f *fixture, _ *pawl.Lease) { f.pause("q"); f.resume("q") },
}}
