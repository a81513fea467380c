package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// ending is a way to end the lease of a cancelled job other than an ack.
type ending struct {
	name   string
	do     func(*fixture, *pawl.Lease)
	failed bool // it counts an attempt, and its cause
	crash  bool
	needs  needs
}

var endings = []ending{
	{"nack", func(f *fixture, l *pawl.Lease) { f.nack(l, 0) }, true, false, 0},
	{"nack with a delay", func(f *fixture, l *pawl.Lease) { f.nack(l, time.Hour) }, true, false, 0},
	{"abandon, exhausted", (*fixture).abandon, true, false, 0},
	{"abandon, permanent", func(f *fixture, l *pawl.Lease) {
		f.ok(f.q.Settle(f.Context(), l.Abandon(pawl.ReasonPermanent, errBoom)), "abandon")
	}, true, false, 0},
	{"release", (*fixture).release, false, false, 0},
	{"snooze", func(f *fixture, l *pawl.Lease) { f.snooze(l, time.Hour) }, false, false, 0},
	{"snooze without a delay", func(f *fixture, l *pawl.Lease) { f.snooze(l, 0) }, false, false, 0},
	{"expiry", func(f *fixture, l *pawl.Lease) { f.pass(time.Until(l.Expires)) }, false, true, 0},
	{"restart", func(f *fixture, _ *pawl.Lease) { f.restart() }, false, true, alone},
}

// ended returns what an ending makes of a job.
func (end ending) ended(e *pawl.Envelope, reason pawl.Reason) {
	e.State, e.LeasedSince, e.Cancelled = pawl.Dead, time.Time{}, false
	e.Crashes, e.BackoffSince = 0, time.Time{}
	e.Death = &pawl.Death{Reason: reason, At: time.Now()}
	if end.failed {
		failed(e, time.Now(), errBoom.Error())
	}
}

// endsCancelled cancels a leased job and ends its lease.
func endsCancelled(end ending) test {
	return newTest("leased, and "+end.name,
		"If a leased job was cancelled, any end of its lease except an ack makes it dead with the reason cancelled. A "+
			"failed attempt still counts and is in the history; an attempt that did not settle is not.", func(f *fixture) {
			l, want := f.seasoned()
			f.cancel(l.ID)
			f.pass(time.Second)
			crashes := want.Crashes
			end.do(f, l)
			got := f.must(l.ID)
			end.ended(want, pawl.ReasonCancelled)
			if end.crash {
				want.Crashes = crashes + 1
			}
			want.NotBefore = got.NotBefore // which does not apply to a dead job
			f.same(got, want, "the job")
			f.pass(2 * time.Hour)
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			f.is(f.q.Settle(f.Context(), l.Ack()), pawl.ErrLeaseLost, "an ack that comes too late")
			f.is(f.canceller().Cancel(f.Context(), l.ID), pawl.ErrConflict, "another cancel")
			f.same(f.must(l.ID), want, "the job, later")

			f.retry(l.ID, false)
			equal(f, f.must(l.ID).Cancelled, false, "Cancelled after a retry")
			l = f.lease()
			equal(f, l.Envelope.Cancelled, false, "Cancelled in the lease after a retry")
			equal(f, l.Cancelled.Fired(), false, "the signal of that lease fired")
			f.release(l)
			equal(f, f.must(l.ID).State, pawl.Ready, "state after a retry and a release")
		})
}
