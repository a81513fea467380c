package queuetest

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
)

// LimitSetter is a queue whose operators can set other limits than those that are declared.
type LimitSetter interface {
	// SetLimits sets the limits of a named queue, or with nil those that are declared.
	SetLimits(ctx context.Context, queue string, l *pawl.Limits) error
}

// override sets the limits of the default queue, as an operator. It ends the case if the queue has no method for it.
func (f *fixture) override(l pawl.Limits) {
	f.Helper()
	f.ok(able[LimitSetter](f).SetLimits(f.Context(), pawl.DefaultQueue, &l), "set limits")
}

// reset returns the default queue to the declared limits.
func (f *fixture) reset() {
	f.Helper()
	f.ok(able[LimitSetter](f).SetLimits(f.Context(), pawl.DefaultQueue, nil), "reset limits")
}

// limitsAre requires the limits of the default queue that are in force, and those that are declared besides.
func (f *fixture) limitsAre(want pawl.Limits, declared *pawl.Limits, when string) {
	f.Helper()
	stats, err := able[Statter](f).Stats(f.Context())
	f.ok(err, "stats")
	for _, row := range stats.Queues {
		if row.Name != pawl.DefaultQueue {
			continue
		}
		equal(f, row.Limits, want, "limits "+when)
		equal(f, row.Declared != nil, declared != nil, "whether other limits are declared, "+when)
		if declared != nil {
			equal(f, *row.Declared, *declared, "declared limits "+when)
		}
		return
	}
	f.Fatalf("the queue is not in the statistics, %s", when)
}

// raises are limits that keep a second job of a key from running, and those that let it run.
var raises = []struct {
	name          string
	declared, set pawl.Limits
}{
	{"of a queue", pawl.Limits{Running: 1}, pawl.Limits{Running: 2}},
	{"of a queue, removed", pawl.Limits{Running: 1}, pawl.Limits{}},
	{"of a key", pawl.Limits{RunningPerKey: 1}, pawl.Limits{RunningPerKey: 2}},
	{"of a key, removed", pawl.Limits{RunningPerKey: 1}, pawl.Limits{}},
	{"by the rate of a queue", pawl.Limits{Rate: pawl.Rate{Starts: 1, Per: time.Hour}}, pawl.Limits{Rate: pawl.Rate{Starts: 9, Per: time.Hour, Burst: 9}}},
	{"by the rate of a queue, removed", pawl.Limits{Rate: pawl.Rate{Starts: 1, Per: time.Hour}}, pawl.Limits{}},
	{"by the rate of a key, removed", pawl.Limits{RatePerKey: pawl.Rate{Starts: 1, Per: time.Hour}}, pawl.Limits{}},
}

func overrideTests() (tests []test) {
	for _, r := range raises {
		tests = append(tests,
			limitTest("raise a limit "+r.name, "Limits that an operator sets hold at once: a fetch that waits gets a job that they allow.", r.declared, func(f *fixture) {
				able[LimitSetter](f)
				f.add(key("a"))
				f.lease()
				id := f.add(key("a")).ID
				leases, call := f.fetching(f.patient(), pawl.Request{Max: 1})
				f.waits(call, "a fetch while the limit is reached")
				f.override(r.set)
				f.gets(call, leases, id, "the fetch that waited")
				f.limitsAre(r.set, &r.declared, "in force")
			}),
			limitTest("lower a limit "+r.name, "Lower limits end no lease, and let no further job run. After a reset the declared ones hold.", r.set, func(f *fixture) {
				f.add(key("a"))
				l := f.lease()
				f.override(r.declared)
				f.add(key("a"))
				equal(f, len(f.fetch(9)) <= 1, true, "no more jobs than the limit, or its rate, which has begun")
				equal(f, len(f.extend(l)), 0, "leases lost")
				f.add(key("a"))
				equal(f, len(f.fetch(9)), 0, "jobs at the limit")
				f.reset()
				f.limitsAre(r.set, nil, "after the reset")
			}))
	}
	return append(tests, moreOverrideTests()...)
}

func moreOverrideTests() []test {
	declared := pawl.Limits{Running: 3}
	return []test{
		limitTest("are beside the declared ones", "Limits that an operator sets are reported beside the declared ones. Setting them again replaces them, and a reset removes them.", declared, func(f *fixture) {
			able[LimitSetter](f)
			f.add()
			f.limitsAre(declared, nil, "before")
			f.reset()
			f.limitsAre(declared, nil, "after a reset of nothing")
			for n := 1; n < 3; n++ {
				set := pawl.Limits{Running: n, Rate: pawl.Rate{Starts: n, Per: time.Second}}
				f.override(set)
				f.limitsAre(set, &declared, "in force")
			}
			f.override(declared)
			f.limitsAre(declared, &declared, "set as they are declared")
			f.reset()
			f.limitsAre(declared, nil, "after the reset")
		}),
		newTest("of a queue without limits", "An operator can set limits for a queue that declares none, also before its first job.", func(f *fixture) {
			f.override(pawl.Limits{RunningPerKey: 1})
			f.enqueue(keyed("a"), keyed("a"))
			equal(f, len(f.fetch(9)), 1, "jobs")
			f.limitsAre(pawl.Limits{RunningPerKey: 1}, new(pawl.Limits), "in force")
			f.reset()
			equal(f, len(f.fetch(9)), 1, "jobs after the reset")
		}),
		limitTest("end the rests of keys", "A queue that loses its limits for each key forgets how long its keys rest.", pawl.Limits{}, func(f *fixture) {
			f.override(pawl.Limits{RunningPerKey: 1})
			f.enqueue(keyed("a"))
			f.ok(f.q.Settle(f.Context(), f.lease().Throttle(time.Hour, pawl.ThisKey)), "throttle")
			equal(f, len(f.fetch(9)), 0, "jobs of a key that rests")
			f.reset()
			l := first(f.fetch(9))
			equal(f, l != nil, true, "a job after the reset")
			f.release(l)
			f.override(pawl.Limits{RunningPerKey: 1})
			equal(f, len(f.fetch(9)), 1, "jobs once keys have limits again")
		}),
		limitTest("that are refused", "SetLimits refuses what is no limit, another order or other turns of keys, and a bad name. Nothing changes.", declared, func(f *fixture) {
			q := able[LimitSetter](f)
			f.add()
			for _, bad := range []pawl.Limits{{Running: -1}, {Rate: pawl.Rate{Starts: 1}}, {InOrder: pawl.OrderHold}, {Fair: true}, {MaxWaiting: -1}} {
				f.is(q.SetLimits(f.Context(), pawl.DefaultQueue, &bad), pawl.ErrInvalid, "limits that make no sense")
			}
			f.is(q.SetLimits(f.Context(), "a\x00b", nil), pawl.ErrInvalid, "a bad name")
			f.is(q.SetLimits(f.ended(), pawl.DefaultQueue, &pawl.Limits{}), pawl.ErrNotAccepted, "a context that has ended")
			f.limitsAre(declared, nil, "after the refusals")
		}),
		limitTest("keep the order of keys", "Limits that an operator sets hold beside the order of keys that is declared.", pawl.Limits{InOrder: pawl.OrderContinue}, func(f *fixture) {
			f.override(pawl.Limits{InOrder: pawl.OrderContinue, Running: 1})
			ids := []pawl.ID{f.add(key("a")).ID, f.add(key("a")).ID, f.add(key("b")).ID}
			l := f.lease()
			f.nack(l, 0)
			equal(f, first(f.fetch(9)).ID == ids[1], false, "the second job of a key runs before the first is done")
		}).alsoRequiring(pawl.OrderedKeys),
		limitTest("of waiting jobs", "A bound that an operator sets counts the jobs that are there.", pawl.Limits{MaxWaitingPerKey: 5}, func(f *fixture) {
			able[LimitSetter](f)
			f.enqueue(keyed("a"), keyed("a"))
			f.override(pawl.Limits{MaxWaiting: 2})
			f.refuses("beyond the bound of an operator", plain())
			f.override(pawl.Limits{MaxWaitingPerKey: 2})
			f.refuses("beyond the bound of a key", keyed("a"))
			f.enqueue(plain())
			f.reset()
			f.enqueue(keyed("a"), keyed("a"), keyed("a"))
			f.refuses("beyond the declared bound", keyed("a"))
		}).alsoRequiring(pawl.BoundedQueues),
		limitTest("survive a restart", "Limits that an operator has set stay in force over restarts, whatever is declared. A reset returns to what was declared last.", declared, func(f *fixture) {
			set := pawl.Limits{RunningPerKey: 1, RatePerKey: pawl.Rate{Starts: 100, Per: time.Second, Burst: 7}}
			f.enqueue(keyed("a"), keyed("a"), keyed("a"))
			f.override(set)
			for _, later := range []pawl.Limits{declared, {Running: 2}, {}, {RunningPerKey: 2}} {
				f.settings.Limits = limited(later).Limits
				f.restart()
				f.limitsAre(set, &later, "after the restart")
				leases := f.fetch(9)
				equal(f, len(leases), 1, "jobs of the key")
				f.release(leases[0])
			}
			f.settings.Limits = nil
			f.restart()
			f.limitsAre(set, &pawl.Limits{RunningPerKey: 2}, "after a restart that declares nothing")
			f.reset()
			f.limitsAre(pawl.Limits{RunningPerKey: 2}, nil, "after the reset")
			equal(f, len(f.fetch(9)), 2, "jobs of the key")
		}).needing(alone),
		limitTest("take on another order", "If another order or other turns of keys are declared later, the limits that an operator has set take them on.", declared, func(f *fixture) {
			f.enqueue(keyed("a"), keyed("a"), keyed("a"))
			f.override(pawl.Limits{RunningPerKey: 2})
			later := pawl.Limits{InOrder: pawl.OrderContinue}
			f.settings.Limits = limited(later).Limits
			f.restart()
			f.limitsAre(pawl.Limits{RunningPerKey: 1, InOrder: pawl.OrderContinue}, &later, "after the restart")
			equal(f, len(f.fetch(9)), 1, "jobs of the key")
		}).needing(alone).alsoRequiring(pawl.OrderedKeys),
	}
}
