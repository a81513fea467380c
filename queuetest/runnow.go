package queuetest

import (
	"errors"
	"time"

	"github.com/gopawl/pawl"
)

func (f *fixture) nowRunner() NowRunner { return able[NowRunner](f) }

// runNow makes a delayed job ready.
func (f *fixture) runNow(id pawl.ID) {
	f.Helper()
	f.ok(f.nowRunner().RunNow(f.Context(), id), "run now")
}

func runNowTests() (tests []test) {
	tests = append(tests,
		newTest("a job that is delayed",
			"RunNow makes a delayed job ready since now, and a waiting fetch gets it. Nothing else changes.", func(f *fixture) {
				id := f.held(pawl.Delayed, priority(7))
				want := f.must(id)
				f.pass(time.Minute)
				f.runNow(id)
				want.State, want.NotBefore = pawl.Ready, time.Now()
				f.same(f.must(id), want, "the job")
				f.is(f.nowRunner().RunNow(f.Context(), id), pawl.ErrConflict, "once more")
				equal(f, f.lease().ID, id, "job to fetch")

				id = f.held(pawl.Delayed)
				leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
				f.waits(call, "while the job waits")
				f.runNow(id)
				f.gets(call, leases, id, "fetch")
				f.pass(1000 * time.Hour)
				equal(f, len(f.list(pawl.Filter{})), 2, "jobs: none came twice")
			}),
	)
	for _, state := range []pawl.State{pawl.Ready, pawl.Leased, pawl.Dead, pawl.Completed} {
		tests = append(tests, runningNow.wrongState("refused for one that is ", "RunNow accepts delayed jobs only. Any "+
			"other job gives ErrConflict and stays unchanged.", state))
	}
	return append(tests,
		newTest("refused for one that waits for its key",
			"A job that is blocked because its idempotency key is leased counts as ready: RunNow returns ErrConflict.", func(f *fixture) {
				l := f.lone(effect("e"))
				id := f.add(effect("e")).ID
				equal(f, len(f.fetch(9)), 0, "jobs to fetch")
				unchanged := f.unchanged()
				f.is(f.nowRunner().RunNow(f.Context(), id), pawl.ErrConflict, "run now")
				unchanged("after the refusal")
				f.release(l)
				f.leases(1)
			}),
		newTest("beside one that has its key",
			"After RunNow, a job still never runs beside another job of its idempotency key, nor after a success.", func(f *fixture) {
				l := f.lone(effect("e"))
				id := f.add(effect("e"), after(time.Hour)).ID
				f.runNow(id)
				equal(f, len(f.fetch(9)), 0, "jobs to fetch")
				f.ack(l)
				equal(f, len(f.fetch(9)), 0, "jobs to fetch after the success")
				equal(f, f.job(id) == nil, true, "it was skipped")
			}), runningNow.unknownJob("no job"),
		newTest("its place",
			"RunNow puts a job behind the ready jobs of its priority and ahead of later ones.", func(f *fixture) {
				first := f.add(of("c"), after(2*time.Hour)).ID
				delayed := f.add(of("d"), after(time.Hour)).ID
				f.add(of("b"))
				f.add(of("a"), priority(1))
				f.pass(time.Second)
				f.runNow(first)
				f.pass(time.Second)
				f.runNow(delayed)
				f.pass(time.Second)
				f.add(of("e"))
				equal(f, kinds(f.fetch(9)), "abcde", "order")
			}),
		newTest("a retry", "RunNow of a job that waits for its retry keeps its counts and its BackoffSince.", func(f *fixture) {
			id := f.add().ID
			failed := time.Now()
			f.nack(f.lease(), time.Hour)
			want := f.must(id)
			f.pass(time.Minute)
			f.runNow(id)
			want.State, want.NotBefore = pawl.Ready, time.Now()
			f.same(f.must(id), want, "the job")
			l := f.lease()
			equal(f, l.Attempts, 1, "attempts")
			f.sameTime(l.BackoffSince, failed, "backoff")
		}),
		newTest("what is due already", "A job that RunNow finds due is ready since it was due.", func(f *fixture) {
			c := f.clocked()
			id := f.add(after(time.Hour)).ID
			due := f.must(id).NotBefore
			c.step(2 * time.Hour)
			if err := f.nowRunner().RunNow(f.Context(), id); err != nil && !errors.Is(err, pawl.ErrConflict) {
				f.Fatalf("run now: %v, want nil, or ErrConflict where it was ready already", err)
			}
			equal(f, f.must(id).State, pawl.Ready, "state")
			f.sameTime(f.must(id).NotBefore, due, "since when it is ready")
		}),
		newTest("past its deadline", "RunNow of a job past its deadline makes it dead, as the passing of time does.", func(f *fixture) {
			c := f.clocked()
			id := f.add(within(time.Hour), after(2*time.Hour)).ID
			c.step(90 * time.Minute)
			f.runNow(id)
			f.diedOf(id, pawl.ReasonDeadline, "state")
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
		}),
		newTest("a deadline to come", "A job that RunNow made ready still becomes dead at its deadline.", func(f *fixture) {
			id := f.add(within(time.Hour), after(2*time.Hour)).ID
			f.runNow(id)
			f.pass(time.Hour)
			equal(f, f.must(id).State, pawl.Dead, "state")
		}),
		restartTest("over a restart", "A job that RunNow made ready is ready after a restart.", func(f *fixture) {
			id := f.held(pawl.Delayed)
			f.runNow(id)
			f.restart()
			equal(f, f.lease().ID, id, "job")
		}),
	)
}

var runNowStories = []story{{
	name: "run now", rule: "RunNow of a delayed job emits EventRunNow. A refused RunNow emits nothing.",
	before: func(f *fixture) *pawl.Lease { f.held(pawl.Delayed); f.held(pawl.Delayed); return nil },
	happens: func(f *fixture, _ *pawl.Lease) {
		for _, e := range f.list(pawl.Filter{}) {
			f.runNow(e.ID)
			f.is(f.nowRunner().RunNow(f.Context(), e.ID), pawl.ErrConflict, "once more")
		}
	},
	want: "run_now run_now",
	look: func(f *fixture, _ *pawl.Lease, events []pawl.Event) {
		for i, e := range f.list(pawl.Filter{}) {
			equal(f, events[i].Job.ID, e.ID, "job")
			f.sameTime(events[i].Job.NotBefore, time.Now(), "since when it is ready, as the event says")
		}
	},
}, {
	name: "the fetch of a retry that was run now", rule: "The event of the fetch of a retry after RunNow reports how long " +
		"the job really was in backoff.",
	before: func(f *fixture) *pawl.Lease {
		l := f.lone()
		f.nack(l, time.Hour)
		f.pass(time.Minute)
		f.runNow(l.ID)
		f.pass(time.Second)
		return l
	},
	happens: func(f *fixture, _ *pawl.Lease) { f.lease() },
	want:    "fetched",
	look: func(f *fixture, _ *pawl.Lease, events []pawl.Event) {
		equal(f, events[0].Backoff, time.Minute+time.Second, "backoff")
		equal(f, events[0].At.Sub(events[0].Job.NotBefore), time.Second, "age")
	},
}, {
	name: "a deadline after run now", rule: "A job that reaches its deadline after RunNow emits EventRunNow, then EventDied.",
	before: func(f *fixture) *pawl.Lease { return nil },
	happens: func(f *fixture, _ *pawl.Lease) {
		e := f.add(within(time.Hour), after(2*time.Hour))
		f.pass(time.Hour - 1)
		f.runNow(e.ID)
		f.pass(1)
	},
	want: "enqueued run_now died/deadline",
}}
