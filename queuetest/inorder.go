package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// inOrder are limits that run the jobs of a key in order.
func inOrder(o pawl.KeyOrder) pawl.Limits { return pawl.Limits{InOrder: o} }

// inOrderTests are the cases of keys whose jobs run in order.
func inOrderTests() (tests []test) {
	for _, e := range ends {
		tests = append(tests, limitTest("in order and "+e.name,
			"In order, a job keeps its key from its first lease until it is acked or dead. Then the next one runs.",
			inOrder(pawl.OrderContinue), func(f *fixture) {
				ids := f.addKeys("aaba")
				leases := f.fetch(9)
				equal(f, keys(leases), "ab", "keys of a fetch of nine")
				f.ack(leases[1])
				e.end(f, leases[0])
				first := f.job(ids[0])
				want := ids[0]
				switch {
				case first == nil || first.State == pawl.Dead:
					want = ids[1]
				case first.State == pawl.Delayed:
					equal(f, len(f.fetch(9)), 0, "jobs while the first waits for its retry")
					f.pass(time.Hour)
				}
				equal(f, f.lease().ID, want, "job that runs then")
			}))
	}
	return append(tests,
		limitTest("in order of becoming due", "In order, the jobs of a key run as they became due, whatever their priority and kind.",
			inOrder(pawl.OrderHold), func(f *fixture) {
				f.add(of("c"), key("x"), func(e *pawl.Envelope) { e.Delay = time.Minute })
				f.add(of("a"), key("x"))
				f.add(of("b"), key("x"), priority(1))
				f.pass(time.Minute)
				f.add(of("d"), key("x"), priority(9))
				order := ""
				for l := f.lease(); l != nil; l = first(f.fetch(9)) {
					f.ack(l)
					order += l.Kind
				}
				equal(f, order, "abcd", "order")
			}),
		limitTest("in order held by a dead job", "With OrderHold a dead job holds its key until it is retried.",
			inOrder(pawl.OrderHold), func(f *fixture) {
				ids := f.addKeys("aab")
				leases := f.fetch(9)
				equal(f, keys(leases), "ab", "keys")
				f.ok(f.q.Settle(f.Context(), leases[0].Abandon(pawl.ReasonPermanent, errBoom)), "abandon")
				equal(f, f.must(ids[0]).HoldsKey, true, "the dead job holds its key")
				equal(f, len(f.fetch(9)), 0, "jobs")
				f.ok(retrying.do(f, ids[0], false), "retry")
				l := f.lease()
				equal(f, l.ID, ids[0], "job that runs then")
				f.ack(l)
				equal(f, f.lease().ID, ids[1], "job behind it")
			}),
		limitTest("in order freed by a deletion", "With OrderHold the deletion of the dead job lets the next one run.",
			inOrder(pawl.OrderHold), func(f *fixture) {
				ids := f.addKeys("aa")
				f.ok(f.q.Settle(f.Context(), f.lease().Abandon(pawl.ReasonPermanent, errBoom)), "abandon")
				f.ok(deleting.do(f, ids[0], false), "delete")
				equal(f, f.lease().ID, ids[1], "job that runs then")
			}),
		limitTest("in order held and counted", "The counts say how many dead jobs hold their key. A job that dies without a lease holds none.",
			inOrder(pawl.OrderHold), func(f *fixture) {
				ids := f.addKeys("aabc")
				held := func(want int, when string) { equal(f, f.heldKeys(pawl.DefaultQueue), want, "held keys "+when) }
				f.cancel(ids[3])
				for _, l := range f.fetch(9) {
					f.abandon(l)
				}
				held(2, "of two dead jobs that ran")
				f.ok(retrying.do(f, ids[0], false), "retry")
				held(1, "after a retry")
				f.abandon(f.lease())
				f.ok(deleting.do(f, ids[2], false), "delete")
				held(1, "after the deletion of the other")
				f.ok(releasing.do(f, ids[0], false), "release")
				held(0, "after a release")
			}).needing(counting),
		limitTest("in order released", "A key that a dead job holds can be released: the job stays dead, and a fetch that waits gets the next one. "+
			"A retry lets the dead job wait for its turn anew.",
			inOrder(pawl.OrderHold), func(f *fixture) {
				ids := f.addKeys("aaa")
				f.abandon(f.lease())
				leases, call := f.fetching(f.patient(), pawl.Request{Max: 1})
				f.waits(call, "a fetch while the key is held")
				release := pawl.Change{Verb: pawl.VerbReleaseKey}
				f.ok(f.dryRun(release, ids[0])[0], "dry run")
				f.ok(f.change(release, ids[0])[0], "release")
				l := f.gets(call, leases, ids[1], "the fetch that waited")
				equal(f, f.must(ids[0]).State, pawl.Dead, "state of the dead job")
				equal(f, f.must(ids[0]).HoldsKey, false, "the dead job holds its key")
				f.pass(time.Second)
				f.ok(retrying.do(f, ids[0], false), "retry")
				for _, id := range []pawl.ID{ids[0], ids[1], ids[2]} {
					f.is(f.change(release, id)[0], pawl.ErrNotEligible, "release of a job that is not dead")
				}
				f.ack(l)
				f.ack(f.lease())
				equal(f, f.lease().ID, ids[0], "job that runs last")
			}),
		limitTest("in order released once", "Only a dead job that holds its key can be released, and once.",
			inOrder(pawl.OrderHold), func(f *fixture) {
				release := pawl.Change{Verb: pawl.VerbReleaseKey}
				ids := f.addKeys("ab")
				f.cancel(ids[0])
				f.is(f.change(release, ids[0])[0], pawl.ErrNotEligible, "release of a job that never ran")
				f.abandon(f.lease())
				f.ok(f.change(release, ids[1])[0], "release")
				f.is(f.change(release, ids[1])[0], pawl.ErrNotEligible, "second release")
				f.fresh(f.settings)
			}),
		limitTest("in order after a cancellation", "A job that is cancelled before its first lease holds no key.",
			inOrder(pawl.OrderHold), func(f *fixture) {
				ids := f.addKeys("aaa")
				f.cancel(ids[0])
				f.cancel(ids[1])
				equal(f, f.lease().ID, ids[2], "job that runs then")
			}),
		limitTest("in order over a restart", "A restart keeps the order: the job that was leased runs first, and a dead job still holds its key.",
			inOrder(pawl.OrderHold), func(f *fixture) {
				ids := f.addKeys("aabb")
				leases := f.fetch(9)
				f.ok(f.q.Settle(f.Context(), leases[1].Abandon(pawl.ReasonPermanent, errBoom)), "abandon")
				f.restart()
				equal(f, f.lease().ID, ids[0], "job of the first key")
				equal(f, len(f.fetch(9)), 0, "jobs of the held key")
			}).needing(alone),
		limitTest("in order that changes", "An order that is declared anew holds for the jobs that are there.",
			pawl.Limits{}, func(f *fixture) {
				ids := f.addKeys("aaa")
				for _, step := range []struct {
					limits pawl.Limits
					want   int
				}{{inOrder(pawl.OrderHold), 1}, {pawl.Limits{RunningPerKey: 2}, 2}, {inOrder(pawl.OrderContinue), 1}, {pawl.Limits{}, 3}} {
					f.settings.Limits = limited(step.limits).Limits
					f.restart()
					leases := f.fetch(9)
					equal(f, len(leases), step.want, "jobs")
					equal(f, leases[0].ID, ids[0], "first of them")
					for _, l := range leases {
						f.ok(f.q.Settle(f.Context(), l.Release()), "release")
					}
				}
			}).needing(alone),
		limitTest("why, for a turn", "In order, a job waits for the job of its key that goes first. Its key names that job, also while it waits for a retry.",
			inOrder(pawl.OrderHold), func(f *fixture) {
				ids := f.addKeys("aa")
				f.obstructed(ids[0], "the first job")
				equal(f, f.obstructed(ids[1], "the second job", pawl.ByTurn)[0].Holders[0], ids[0], "job that goes first")
				f.ok(f.q.Settle(f.Context(), f.lease().Nack(time.Hour, errBoom)), "nack")
				f.keysAre("while the first job waits for its retry", pawl.KeyStats{Key: "a", Ready: 1, Blocked: 1, Head: ids[0]})
				equal(f, f.obstructed(ids[1], "the second job", pawl.ByTurn)[0].Holders[0], ids[0], "job that holds the key")
				f.cancel(ids[0])
				f.keysAre("while the first job is dead", pawl.KeyStats{Key: "a", Ready: 1, Blocked: 1, Head: ids[0], Held: true})
				equal(f, f.obstructed(ids[1], "the second job", pawl.ByHeldKey)[0].Holders[0], ids[0], "dead job that holds the key")
				f.ok(deleting.do(f, ids[0], false), "delete")
				f.obstructed(ids[1], "the second job, when it is alone")
				f.keysAre("then", pawl.KeyStats{Key: "a", Ready: 1, Head: ids[1]})
			}),
		limitTest("in order behind a skipped job", "When a fetch skips the job of a key that goes first, a fetch that waits gets the next one.",
			inOrder(pawl.OrderHold), func(f *fixture) {
				f.add(of("a"), effect("e"), ttl(time.Hour))
				f.ack(f.lease())
				f.add(of("a"), key("x"), effect("e"))
				id := f.add(of("b"), key("x")).ID
				leases, call := f.fetching(f.patient(), pawl.Request{Kinds: []string{"b"}, Max: 1})
				f.waits(call, "a fetch of the second job")
				equal(f, len(f.fetchKinds(9, "a")), 0, "jobs of the fetch that skips the first")
				f.gets(call, leases, id, "the fetch that waited")
			}).alsoRequiring(pawl.IdempotencyKeys),
		limitTest("in order without a key", "A job without a key runs whatever others do.", inOrder(pawl.OrderHold), func(f *fixture) {
			f.add()
			f.add()
			equal(f, len(f.fetch(9)), 2, "jobs")
		}))
}
