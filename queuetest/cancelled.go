package queuetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

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
				}),
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
			equal(f, f.must(id).State, pawl.Dead, "state")
			equal(f, f.must(id).Death.Reason, pawl.ReasonCancelled, "reason")
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
		newTest("refused calls",
			"A cancel whose context has ended returns ErrNotAccepted and changes nothing. A cancel after Close returns "+
				"ErrClosed.", func(f *fixture) {
				ids := []pawl.ID{f.held(pawl.Leased), f.held(pawl.Ready)}
				ctx, cancel := context.WithCancel(f.Context())
				cancel()
				unchanged := f.unchanged()
				for _, id := range ids {
					f.is(f.canceller().Cancel(ctx, id), pawl.ErrNotAccepted, "cancel")
				}
				unchanged("after the refusals")
				c := f.canceller()
				f.closed()
				f.is(c.Cancel(context.Background(), ids[0]), pawl.ErrClosed, "cancel after Close")
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
