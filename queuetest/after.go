package queuetest

import (
	"context"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

func afterJobs(ids ...pawl.ID) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.After = ids }
}

func afterEnds(ids ...pawl.ID) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.AfterAny = ids }
}

// blockedBy requires that a job is blocked by prerequisites of one sort, and that no fetch gets it.
func (f *fixture) blockedBy(what pawl.ObstacleKind, id pawl.ID, needed ...pawl.ID) {
	f.Helper()
	e := f.must(id)
	equal(f, e.State, pawl.Ready, "state of a job that waits")
	f.sameJobs(slices.Concat(e.After, e.AfterAny), needed, "what it waits for")
	f.sameJobs(f.obstructed(id, "a job that waits", what)[0].Holders, needed, "holders")
	equal(f, len(f.fetchKinds(1, e.Kind)), 0, "jobs to fetch")
}

// goes requires that a job waits for nothing, and runs it.
func (f *fixture) goes(id pawl.ID) {
	f.Helper()
	f.obstructed(id, "a job that waits no more")
	leases := f.fetchKinds(1, f.must(id).Kind)
	equal(f, len(leases), 1, "jobs to fetch")
	equal(f, leases[0].ID, id, "the job")
	equal(f, len(leases[0].After)+len(leases[0].AfterAny), 0, "prerequisites in its lease")
	f.ack(leases[0])
}

// prerequisiteEnds are the ways in which a job ends that others wait for.
var prerequisiteEnds = []struct {
	name    string
	prepare func(e *pawl.Envelope)
	end     func(f *fixture, id pawl.ID)
	success bool
}{
	{"an ack", kept(0), func(f *fixture, _ pawl.ID) { f.ack(f.lease()) }, true},
	{"an ack with a retention", kept(time.Hour), func(f *fixture, _ pawl.ID) { f.ack(f.lease()) }, true},
	{"an ack after a failure", kept(0), func(f *fixture, _ pawl.ID) { f.nack(f.lease(), 0); f.ack(f.lease()) }, true},
	{"an ack of a job with a key", key("k"), func(f *fixture, _ pawl.ID) { f.ack(f.lease()) }, true},
	{"its effect, which had taken place", effect("x"), func(f *fixture, id pawl.ID) {
		kind := f.must(id).Kind
		f.add(on("first"), of(kind), effect("x"))
		f.ack(f.lease("first"))
		equal(f, len(f.fetchKinds(1, kind)), 0, "jobs to fetch")
		equal(f, f.job(id) == nil, true, "the job is gone")
	}, true},
	{"an abandon", kept(0), func(f *fixture, _ pawl.ID) { f.abandon(f.lease()) }, false},
	{"a cancellation while it waits", kept(0), func(f *fixture, id pawl.ID) { f.cancel(id) }, false},
	{"a cancellation while it runs", kept(0), func(f *fixture, id pawl.ID) { l := f.lease(); f.cancel(id); f.nack(l, 0) }, false},
	{"its deadline", within(time.Minute), func(f *fixture, _ pawl.ID) { f.pass(time.Minute) }, false},
	{"its crashes", kept(0), func(f *fixture, _ pawl.ID) {
		for range 5 {
			f.expire(f.lease())
		}
	}, false},
}

// dependents requires which jobs wait for the success of a job, or for that of a job which does.
func (f *fixture) dependents(id pawl.ID, want ...pawl.ID) {
	f.Helper()
	all, err := able[interface {
		Dependents(ctx context.Context, id pawl.ID) ([]pawl.ID, error)
	}](f).Dependents(f.Context(), id)
	f.ok(err, "read the dependents")
	f.sameJobs(all, want, "dependents")
}

func afterTests() []test {
	tests := []test{
		newTest("a job after others", "A job that waits for others is ready and blocked, and runs once the last of them has succeeded.", func(f *fixture) {
			first, second := f.add().ID, f.add().ID
			id := f.add(of("after"), afterJobs(first, second, first)).ID
			f.blockedBy(pawl.ByJobs, id, first, second)
			equal(f, f.blocked(pawl.DefaultQueue), 1, "blocked jobs")
			f.ack(f.fetch(1)[0])
			f.blockedBy(pawl.ByJobs, id, second)
			f.ack(f.lease())
			equal(f, f.blocked(pawl.DefaultQueue), 0, "blocked jobs")
			f.goes(id)
		}),
		newTest("a fetch that skips a prerequisite", "A fetch that skips a job, because its effect has taken place, gets the job that waits for it.", func(f *fixture) {
			f.add(effect("x"))
			f.ack(f.lease())
			for _, wait := range []pawl.Wait{pawl.WaitFinished, pawl.WaitDrained, pawl.WaitNot} {
				f.add(of("after"), afterJobs(f.add(effect("x")).ID))
				equal(f, f.drained(pawl.Request{Queues: []string{pawl.DefaultQueue}, Max: 1, Wait: wait}, nil), "after", "kinds of the jobs")
			}
		}),
		newTest("a dead prerequisite", "A job waits for a dead one until somebody retries it and it succeeds, or cancels the job. If the dead one is gone, only the cancellation is left.", func(f *fixture) {
			first := f.add().ID
			id, other := f.add(of("after"), afterJobs(first)).ID, f.add(of("other"), afterJobs(first)).ID
			f.abandon(f.lease())
			f.blockedBy(pawl.ByDeadJobs, id, first)
			f.retry(first, false)
			f.blockedBy(pawl.ByJobs, id, first)
			f.abandon(f.lease())
			f.cancel(other)
			equal(f, f.must(other).State, pawl.Dead, "state of the cancelled job")
			f.retry(other, false)
			f.blockedBy(pawl.ByDeadJobs, other, first)
			f.cancel(other)
			f.retry(first, false)
			f.ack(f.lease())
			f.goes(id)
			f.retry(other, false)
			f.goes(other)
		}),
		newTest("a prerequisite that is gone", "A job that waits for a dead one keeps waiting when that one is deleted, until it is cancelled.", func(f *fixture) {
			first := f.add().ID
			id := f.add(of("after"), afterJobs(first)).ID
			f.abandon(f.lease())
			f.remove(first)
			f.blockedBy(pawl.ByGoneJobs, id, first)
			f.is(f.try(&pawl.Envelope{ID: first, Kind: "k", After: []pawl.ID{id}}), pawl.ErrConflict, "a cycle by the ID of the deleted job")
			f.cancel(id)
			f.remove(id)
			f.enqueueOne(&pawl.Envelope{ID: first, Kind: "k"}, nil)
			f.ack(f.lease())
		}),
		newTest("after an end", "A job that waits for an end runs after a death, too. A later attempt of the dead job changes nothing.", func(f *fixture) {
			first := f.add().ID
			id, late := f.add(of("after"), afterEnds(first)).ID, f.add(of("late"), afterEnds(first), afterJobs(first)).ID
			f.blockedBy(pawl.ByJobs, id, first)
			f.abandon(f.lease())
			f.blockedBy(pawl.ByDeadJobs, late, first) // for which only a success will do
			f.retry(first, false)
			f.goes(id)
			f.abandon(f.lease())
			f.goes(f.add(of("after"), afterEnds(first)).ID) // it is dead already
		}),
		newTest("dependents", "The dependents of a job are those that wait for its success, also through others, and that live. The nearest come first. The job may be dead or gone.", func(f *fixture) {
			first, other := f.add().ID, f.add(on("other")).ID
			near := f.add(of("near"), afterJobs(first, other)).ID
			f.add(of("any"), afterEnds(first))
			far := f.add(of("far"), afterJobs(near, first)).ID
			late := f.add(of("late"), after(time.Hour), afterJobs(far)).ID
			f.dependents(first, near, far, late)
			f.dependents(far, late)
			f.dependents(late)
			f.cancel(far)
			f.dependents(first, near, late)
			f.abandon(f.lease())
			f.dependents(first, near, late)
			f.remove(first)
			f.dependents(first, near, late)
			f.dependents(pawl.NewID(time.Now()))
			f.ack(f.lease("other"))
			f.dependents(other)
		}),
		newTest("unknown prerequisites", "An enqueue that names a job which the queue does not hold, or holds no record of, stores nothing.", func(f *fixture) {
			done := f.add().ID
			f.ack(f.lease())
			for _, id := range []pawl.ID{done, pawl.NewID(time.Now())} {
				f.is(f.try(&pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k", After: []pawl.ID{id}}), pawl.ErrNotFound, "after a job that is not there")
				f.is(f.try(&pawl.Envelope{Kind: "k", AfterAny: []pawl.ID{id}}), pawl.ErrNotFound, "after any end of a job that is not there")
			}
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs")
		}),
		newTest("a record of a success", "The record of a success counts as one, as long as it is kept.", func(f *fixture) {
			done := f.completedBy(time.Hour)
			f.goes(f.add(of("after"), afterJobs(done)).ID)
			f.pass(time.Hour)
			f.is(f.try(&pawl.Envelope{Kind: "k", After: []pawl.ID{done}}), pawl.ErrNotFound, "after a job whose record is gone")
		}).alsoRequiring(pawl.Retention),
		newTest("in a batch", "A job may wait for a job before it in its batch, and for none behind it, nor for itself.", func(f *fixture) {
			ids := []pawl.ID{pawl.NewID(time.Now()), pawl.NewID(time.Now())}
			a, b := &pawl.Envelope{ID: ids[0], Kind: "k"}, &pawl.Envelope{ID: ids[1], Kind: "after", After: ids[:1]}
			f.is(f.try(b, a), pawl.ErrNotFound, "in the wrong order")
			f.invalid(f.try(&pawl.Envelope{ID: ids[0], Kind: "k", AfterAny: ids[:1]}), "after itself")
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs")
			f.enqueue(a, b)
			f.blockedBy(pawl.ByJobs, ids[1], ids[0])
			f.ack(f.lease())
			f.goes(ids[1])
		}),
		newTest("refused prerequisites", "A job has at most MaxAfter prerequisites, each with an ID, and does not take the place of another.", func(f *fixture) {
			some := make([]pawl.ID, pawl.MaxAfter+1)
			for i := range some {
				some[i] = pawl.NewID(time.Now())
			}
			f.invalid(f.try(&pawl.Envelope{Kind: "k", After: some}), "too many")
			f.invalid(f.try(&pawl.Envelope{Kind: "k", After: some[:500], AfterAny: some[500:]}), "too many in all")
			f.invalid(f.try(&pawl.Envelope{Kind: "k", After: []pawl.ID{{}}}), "no ID")
			f.invalid(f.try(&pawl.Envelope{Kind: "k", UniqueKey: "u", OnConflict: pawl.Replace, After: some[:1]}), "a replacement")
		}),
		newTest("a delayed job after another", "A job waits for both its time and its prerequisites.", func(f *fixture) {
			first := f.add().ID
			id := f.add(of("after"), after(time.Minute), afterJobs(first)).ID
			early := f.add(of("early"), after(time.Hour), afterJobs(first)).ID
			f.obstructed(id, "a delayed job", pawl.ByDelay, pawl.ByJobs)
			f.pass(time.Minute)
			f.blockedBy(pawl.ByJobs, id, first)
			f.ack(f.lease())
			f.goes(id)
			f.obstructed(early, "a delayed job whose prerequisite has succeeded", pawl.ByDelay)
			f.runNow(early)
			f.goes(early)
		}),
		newTest("a deadline while it waits", "A job that waits for another dies at its deadline, and then waits for nothing.", func(f *fixture) {
			first := f.add().ID
			id := f.add(of("after"), within(time.Minute), afterJobs(first)).ID
			f.pass(time.Minute)
			f.diedOf(id, pawl.ReasonDeadline, "a job that waits")
			f.ack(f.lease())
			equal(f, f.must(id).State, pawl.Dead, "state")
			equal(f, f.blocked(pawl.DefaultQueue), 0, "blocked jobs")
		}).alsoRequiring(pawl.Deadlines),
		newTest("a chain", "When a job becomes dead after its prerequisite, the jobs that wait for its end run.", func(f *fixture) {
			first := f.add().ID
			second := f.add(of("second"), within(time.Minute), afterJobs(first)).ID
			last := f.add(of("last"), afterEnds(second)).ID
			f.pass(time.Minute)
			f.goes(last)
		}).alsoRequiring(pawl.Deadlines),
		newTest("wakes a fetch", "A fetch that waits gets a job as soon as its last prerequisite has succeeded.", func(f *fixture) {
			first := f.add().ID
			l := f.lease()
			id := f.add(of("after"), afterJobs(first)).ID
			f.sameTime(f.stats(pawl.DefaultQueue).Oldest, time.Time{}, "since when a job is ready that could be fetched")
			leases, call := f.fetching(f.patient(), pawl.Request{Max: 1})
			f.waits(call, "a fetch")
			f.ack(l)
			f.ack(f.gets(call, leases, id, "a fetch"))
		}),
		newTest("a drain", "A fetch that drains a queue waits for its job that waits for one of another queue.", func(f *fixture) {
			f.add(on("other"))
			l := f.lease("other")
			id := f.add(of("after"), afterJobs(l.ID)).ID
			leases, call := f.fetching(f.patient(), pawl.Request{Max: 1, Wait: pawl.WaitDrained})
			f.waits(call, "a drain")
			f.ack(l)
			f.ack(f.gets(call, leases, id, "a drain"))
		}),
		newTest("many", "A job may wait for many, and many for one.", func(f *fixture) {
			var batch []*pawl.Envelope
			var ids []pawl.ID
			for range 100 {
				ids = append(ids, pawl.NewID(time.Now()))
				batch = append(batch, &pawl.Envelope{ID: ids[len(ids)-1], Kind: "k"})
			}
			middle := pawl.NewID(time.Now())
			batch = append(batch, &pawl.Envelope{ID: middle, Kind: "middle", After: ids})
			for range 100 {
				batch = append(batch, &pawl.Envelope{Kind: "last", After: []pawl.ID{middle}})
			}
			f.enqueue(batch...)
			equal(f, f.blocked(pawl.DefaultQueue), 101, "blocked jobs")
			for _, l := range f.leases(100) {
				equal(f, len(f.fetch(1)), 0, "jobs to fetch")
				f.ack(l)
			}
			f.goes(middle)
			equal(f, f.blocked(pawl.DefaultQueue), 0, "blocked jobs")
			equal(f, len(f.fetch(200)), 100, "jobs to fetch")
		}),
		newTest("a transfer of a prerequisite", "A job waits for the one that takes the place of its dead prerequisite, and one that is replaced itself waits no more.", func(f *fixture) {
			first := f.add().ID
			id := f.add(of("after"), afterJobs(first)).ID
			other := f.add(of("other"), afterJobs(first)).ID
			f.abandon(f.lease())
			q := f.transferer()
			f.cancel(other)
			f.is(q.Transfer(f.Context(), &pawl.Envelope{ID: first, Kind: "k", After: []pawl.ID{id}}, nil), pawl.ErrConflict, "a cycle by a transfer")
			f.ok(q.Transfer(f.Context(), &pawl.Envelope{ID: other, Kind: "other"}, nil), "transfer")
			f.goes(other)
			f.ok(q.Transfer(f.Context(), &pawl.Envelope{ID: first, Kind: "k"}, nil), "transfer")
			f.blockedBy(pawl.ByJobs, id, first)
			f.ack(f.lease())
			f.goes(id)
		}),
		newTest("a replaced prerequisite", "A job that waits for one which is replaced waits for the replacement.", func(f *fixture) {
			first := f.add(unique("u")).ID
			id := f.add(of("after"), afterJobs(first)).ID
			f.enqueueOne(&pawl.Envelope{Kind: "k", UniqueKey: "u", OnConflict: pawl.Replace}, nil)
			f.blockedBy(pawl.ByJobs, id, first)
			f.ack(f.lease())
			f.goes(id)
		}).alsoRequiring(pawl.UniqueKeys),
		newTest("a replacement", "A job that replaces one that waits waits for nothing.", func(f *fixture) {
			first := f.add().ID
			id := f.add(of("after"), unique("u"), afterJobs(first)).ID
			f.enqueueOne(&pawl.Envelope{Kind: "after", UniqueKey: "u", OnConflict: pawl.Replace}, nil)
			f.goes(id)
			f.ack(f.lease())
		}).alsoRequiring(pawl.UniqueKeys),
		newTest("in a mutation", "A mutation that ends a job, or enqueues one after it, does so for good or not at all.", func(f *fixture) {
			first := f.add().ID
			l := f.lease()
			id := pawl.NewID(time.Now())
			enqueue := func(ops driver.Ops) error {
				return enqueueIn(ops, &pawl.Envelope{ID: id, Kind: "after", After: []pawl.ID{first}})
			}
			q := f.mutator()
			f.is(q.Mutate(f.Context(), mutation{enqueue, boomAfter(put("row"))}, 0), errBoom, "mutate")
			f.ok(q.Mutate(f.Context(), mutation{enqueue, put("row")}, 0), "mutate")
			f.blockedBy(pawl.ByJobs, id, first)
			f.is(q.Mutate(f.Context(), mutation{func(ops driver.Ops) error { return ops.Ack(l) }, boomAfter(put("row"))}, 0), errBoom, "mutate")
			f.blockedBy(pawl.ByJobs, id, first)
			f.ok(q.Mutate(f.Context(), mutation{func(ops driver.Ops) error { return ops.Ack(l) }, put("row")}, 0), "mutate")
			f.goes(id)
		}).needing(mutating),
		restartTest("a restart", "A job waits over a restart.", func(f *fixture) {
			first := f.add().ID
			id := f.add(of("after"), afterJobs(first)).ID
			f.restart()
			f.blockedBy(pawl.ByJobs, id, first)
			f.ack(f.lease())
			f.goes(id)
		}),
		newTest("a restore", "A restored job waits for what it had waited for, whichever of them comes first.", func(f *fixture) {
			f.restorer()
			first, second := f.add().ID, f.add(kept(time.Hour)).ID
			id := f.add(of("after"), afterJobs(first, second)).ID
			end := f.add(of("end"), afterEnds(first)).ID
			f.ack(f.fetch(1)[0])
			f.abandon(f.fetchKinds(1, f.must(second).Kind)[0])
			jobs := f.list(pawl.Filter{})
			for range 2 {
				f.fresh(f.settings)
				slices.Reverse(jobs)
				f.restore(jobs[:1])
				f.restore(jobs[1:])
				want := f.must(second).State
				equal(f, want, pawl.Dead, "state of the second")
				f.blockedBy(pawl.ByDeadJobs, id, second)
				f.goes(end)
			}
			f.retry(second, false)
			f.ack(f.lease())
			f.goes(id)
		}).alsoRequiring(pawl.Retention),
		newTest("a restore of a cancelled prerequisite", "A restored job runs once its prerequisite is restored, if that ends the wait.", func(f *fixture) {
			f.restorer()
			first, id := pawl.NewID(time.Now()), pawl.NewID(time.Now())
			f.restore([]*pawl.Envelope{{ID: id, Kind: "after", State: pawl.Ready, AfterAny: []pawl.ID{first}}})
			f.restore([]*pawl.Envelope{{ID: first, Kind: "k", State: pawl.Leased, Cancelled: true}})
			f.goes(id)
		}),
		newTest("keys of jobs that wait", "A job that waits takes no room of its key.", (*fixture).keysAfter).
			alsoRequiring(pawl.LimitKeys).with(Settings{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {RunningPerKey: 1}}}),
		newTest("turns of jobs that wait", "A job that waits takes no turn of its key.", (*fixture).keysAfter).
			alsoRequiring(pawl.OrderedKeys).with(Settings{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {InOrder: pawl.OrderContinue}}}),
		newTest("a walk", "After every step of a random walk, exactly those jobs are blocked whose prerequisites are not met.", func(f *fixture) {
			for seed := range uint64(3) {
				f.fresh(f.settings)
				f.walkAfter(seed)
			}
		}),
	}
	for _, by := range prerequisiteEnds {
		tests = append(tests, newTest("an end by "+by.name, "Each success lets those go that wait for it, and each death those that wait for an end.", func(f *fixture) {
			first := f.add(by.prepare).ID
			id, end := f.add(of("after"), afterJobs(first)).ID, f.add(of("end"), afterEnds(first)).ID
			f.blockedBy(pawl.ByJobs, end, first)
			by.end(f, first)
			f.goes(end)
			if by.success {
				f.goes(id)
			} else {
				f.blockedBy(pawl.ByDeadJobs, id, first)
			}
		}))
	}
	return tests
}

// keysAfter lets jobs of a key run before one that waits for another job, one at a time.
func (f *fixture) keysAfter() {
	first := f.add().ID
	id := f.add(of("after"), key("x"), afterJobs(first)).ID
	l := f.lease()
	f.goes(f.add(of("second"), key("x")).ID)
	third := f.add(of("third"), key("x")).ID
	running := f.fetchKinds(1, "third")
	equal(f, len(running), 1, "jobs to fetch")
	equal(f, running[0].ID, third, "the job")
	f.ack(l)
	equal(f, len(f.fetch(1)), 0, "jobs to fetch while another of the key runs")
	f.ack(running[0])
	f.goes(id)
	f.goes(f.add(of("last"), key("x")).ID)
}
