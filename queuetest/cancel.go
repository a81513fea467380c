package queuetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// cancelsWaiting cancels a job that is not leased and failed once.
func cancelsWaiting(state pawl.State) test {
	return newTest("a job that is "+string(state),
		"Cancel of a job that is not leased makes it dead with the reason cancelled. Nothing runs, and nothing else "+
			"changes.", func(f *fixture) {
			f.canceller() // or skip
			e := f.add(priority(3), func(e *pawl.Envelope) { e.Payload = make([]byte, 3000) })
			f.nack(f.lease(), 0)
			switch l := f.lease(); state {
			case pawl.Ready:
				f.release(l)
			case pawl.Delayed:
				f.snooze(l, time.Hour)
			}
			f.pass(time.Second)
			want := f.must(e.ID)
			equal(f, want.State, state, "state")
			f.cancel(e.ID)
			want.State, want.Death = pawl.Dead, &pawl.Death{Reason: pawl.ReasonCancelled, At: time.Now()}
			f.same(f.must(e.ID), want, "the job")
			f.pass(2 * time.Hour)
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			f.same(f.must(e.ID), want, "the job, later")
			f.retry(e.ID, false)
			l := f.lease()
			equal(f, l.Cancelled.Fired(), false, "the signal of a lease after the retry fired")
			f.nack(l, 0)
			equal(f, f.must(e.ID).State, pawl.Ready, "state after a retry and a failure")
		})
}

func cancelTests() (tests []test) {
	for _, state := range []pawl.State{pawl.Ready, pawl.Delayed} {
		tests = append(tests, cancelsWaiting(state))
	}
	for _, state := range []pawl.State{pawl.Dead, pawl.Completed} {
		tests = append(tests, cancelling.wrongState("a job that is ",
			"Cancel of a dead or completed job returns ErrConflict and changes nothing.", state))
	}
	for _, end := range endings {
		tests = append(tests, endsCancelled(end).needing(end.needs))
	}
	const flag = "Cancel of a leased job sets its flag and fires the signal of its lease. The handler keeps running until " +
		"its holder settles the lease."
	tests = append(tests,
		newTest("a job that is leased", flag, func(f *fixture) {
			l, want := f.seasoned()
			equal(f, l.Cancelled.Fired(), false, "the signal fired before the cancel")
			for range 2 {
				f.cancel(l.ID)
				want.Cancelled = true
				f.same(f.must(l.ID), want, "the job")
				f.pass(time.Second)
				equal(f, l.Cancelled.Fired(), true, "the signal fired")
			}
			f.pass(l.Length - 4*time.Second)
			equal(f, len(f.extend(l)), 0, "leases lost")
			f.pass(l.Length - 1)
			f.same(f.must(l.ID), want, "the job, later")
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			f.ack(l)
			equal(f, f.job(l.ID) == nil, true, "the job is gone")
		}),
		newTest("a holder that gets the signal", "The signal calls its function once, when the flag is durable.", func(f *fixture) {
			id := f.add().ID
			l := f.lease()
			calls := make(chan bool, 9)
			l.Cancelled.OnFire(func() { calls <- true })
			f.cancel(id)
			f.cancel(id)
			f.pass(0)
			equal(f, len(calls), 1, "calls")
			equal(f, f.must(id).Cancelled, true, "Cancelled")
			l.Cancelled.OnFire(func() { calls <- true })
			equal(f, len(calls), 2, "calls of a function that was added late")
		}),
		newTest("leased, and ack",
			"An ack of a cancelled job succeeds as usual: the job is removed or retained, and its key is done.", func(f *fixture) {
				id := f.add(effect("x")).ID
				l := f.lease()
				f.cancel(id)
				f.ack(l)
				equal(f, f.job(id) == nil, true, "the job is gone")
				f.skips(f.add(effect("x")).ID, "after the success")
				id = f.add(kept(time.Hour)).ID
				l = f.lease()
				f.cancel(id)
				f.ack(l)
				equal(f, f.must(id).State, pawl.Completed, "state")
				equal(f, f.must(id).Attempts, 1, "attempts")
			}),
		newTest("signals of other leases", "A cancel fires the signal of the lease that holds the job, and no other signal.", func(f *fixture) {
			f.addKinds("a", "b")
			leases := f.leases(2)
			f.release(leases[0])
			again := f.lease()
			f.cancel(again.ID)
			f.pass(0)
			equal(f, again.Cancelled.Fired(), true, "the signal of the lease fired")
			equal(f, leases[1].Cancelled.Fired(), false, "the signal of another job's lease fired")
			equal(f, leases[0].Cancelled.Fired(), false, "the signal of an earlier lease fired")
			f.release(leases[1])
			f.cancel(leases[1].ID)
			f.pass(0)
			equal(f, leases[1].Cancelled.Fired(), false, "the signal of a lease that had ended fired")
		}),
		newTest("signals and time", "The end of a lease never fires its signal.", func(f *fixture) {
			f.canceller() // or skip
			for _, v := range verbs {
				f.fresh(Settings{})
				f.add()
				l := f.lease()
				f.end(v, l)
				f.pass(time.Hour)
				equal(f, l.Cancelled.Fired(), false, "the signal fired after "+v.name)
			}
		}),
	)
	return append(tests, moreCancelTests()...)
}

// moreCancelTests cover what a cancel means to fetches, settlements, and other jobs.
func moreCancelTests() (tests []test) {
	for _, wait := range []pawl.Wait{pawl.WaitDrained, pawl.WaitFinished} {
		tests = append(tests,
			newTest("and "+waits[wait],
				"A fetch that waits for the end of the work does not wait for a cancelled job.", func(f *fixture) {
					request := pawl.Request{Max: 1, Ahead: 1, Wait: wait}
					crashed := f.add().ID
					f.expire(f.lease())
					_, call := f.fetching(f.Context(), request)
					f.waits(call, "while a suspect is ready")
					f.cancel(crashed)
					f.ends(call, pawl.ErrEmpty, "fetch")

					f.add()
					l := f.lease()
					_, call = f.fetching(f.Context(), request)
					f.cancel(l.ID)
					f.waits(call, "while a cancelled job runs")
					f.release(l)
					f.ends(call, pawl.ErrEmpty, "fetch")
					if wait == pawl.WaitFinished {
						id := f.add(after(time.Hour)).ID
						_, call = f.fetching(f.Context(), request)
						f.waits(call, "while a job is delayed")
						f.cancel(id)
						f.ends(call, pawl.ErrEmpty, "fetch")
					}
				}).needing(suspecting),
		)
	}
	return append(tests, cancelling.unknownJob("no job"),
		newTest("one of many", "Cancel ends one job, wherever it is in the order. The others keep their order.", func(f *fixture) {
			ids := f.addKinds("a", "b", "c", "d", "e")
			f.cancel(ids[2])
			f.cancel(ids[0])
			equal(f, kinds(f.fetch(9)), "bde", "jobs")
			f.countsAre(pawl.DefaultQueue, pawl.Counts{Leased: 3, Dead: 2}, "the fetch")
		}),
		newTest("at the crash cap",
			"A cancelled job that crashes becomes dead with the reason cancelled, also at the crash limit.", func(f *fixture) {
				id := f.add().ID
				l := f.lease()
				f.cancel(id)
				f.expire(l)
				e := f.must(id)
				equal(f, e.Death.Reason, pawl.ReasonCancelled, "reason")
				equal(f, e.Failures, 0, "failures")
			}).with(Settings{MaxCrashes: 1}),
		newTest("reap", "Reap counts a cancelled job whose lease has expired. The job is dead afterwards.", func(f *fixture) {
			id := f.add().ID
			l := f.lease()
			f.cancel(id)
			<-time.After(l.Length)
			f.reap()
			f.diedOf(id, pawl.ReasonCancelled, "state")
		}),
		restartTest("over a restart", "A cancel is durable.", func(f *fixture) {
			var ids []pawl.ID
			for _, state := range []pawl.State{pawl.Delayed, pawl.Ready} {
				ids = append(ids, f.held(state))
				f.cancel(ids[len(ids)-1])
			}
			unchanged := f.unchanged()
			f.restart()
			unchanged("after the restart")
			f.pass(2 * time.Hour)
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
		}),
		newTest("an envelope with the flag set", "Enqueue accepts every job as a new one, whatever its envelope says about a "+
			"past.", func(f *fixture) {
			e := f.add(func(e *pawl.Envelope) {
				e.Cancelled, e.BackoffSince, e.Completed = true, time.Now(), time.Now()
			})
			equal(f, e.Cancelled, false, "Cancelled")
			f.stored(e, "the job")
			f.release(f.lease())
			equal(f, f.must(e.ID).State, pawl.Ready, "state after a release")
		}),
		tooLate("refused calls",
			"A cancel whose context has ended returns ErrNotAccepted and changes nothing. A cancel after Close returns "+
				"ErrClosed.", pawl.ErrNotAccepted, func(f *fixture) (calls []func(context.Context) error) {
				c := f.canceller()
				for _, id := range []pawl.ID{f.held(pawl.Leased), f.held(pawl.Ready)} {
					calls = append(calls, func(ctx context.Context) error { return c.Cancel(ctx, id) })
				}
				return calls
			}),
		newTest("beside a settle",
			"A concurrent cancel and settle take effect one after the other. In either order, a job that did not succeed "+
				"is dead.", func(f *fixture) {
				c := f.canceller()
				for i := range 40 {
					id := f.add().ID
					l := f.lease()
					v := verbs[i%len(verbs)]
					const callers = 8
					answers := make(chan error, callers+1)
					for range callers {
						go func() { answers <- c.Cancel(f.Context(), id) }()
					}
					go func() {
						if err := v.end(f.Context(), f.q, l); err != nil {
							answers <- fmt.Errorf("%s: %w", v.name, err)
							return
						}
						answers <- nil
					}()
					for range callers + 1 {
						if err := <-answers; !errors.Is(err, pawl.ErrConflict) && !errors.Is(err, pawl.ErrNotFound) {
							f.ok(err, "a call")
						}
					}
					if v.name == "ack" {
						equal(f, f.job(id) == nil, true, "the job is gone after an ack")
						continue
					}
					e := f.must(id)
					equal(f, e.State, pawl.Dead, "state after "+v.name)
					ran := v.name == "nack" || v.name == "abandon"
					equal(f, e.Attempts == 1, ran, "an attempt was counted")
					if v.name != "abandon" {
						equal(f, e.Death.Reason, pawl.ReasonCancelled, "reason after "+v.name)
					}
				}
			}),
		newTest("beside a fetch",
			"A concurrent cancel and fetch take effect one after the other. Either the job is dead, or its holder gets the "+
				"signal.", func(f *fixture) {
				c := f.canceller()
				for range 40 {
					id := f.add().ID
					answer := make(chan error)
					go func() { answer <- c.Cancel(f.Context(), id) }()
					leases := f.fetch(1)
					f.ok(<-answer, "cancel")
					f.pass(0)
					for _, l := range leases {
						equal(f, l.Cancelled.Fired(), true, "the signal fired")
						equal(f, f.must(id).Cancelled, true, "Cancelled")
						f.release(l)
					}
					equal(f, f.must(id).State, pawl.Dead, "state")
				}
			}),
	)
}

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
