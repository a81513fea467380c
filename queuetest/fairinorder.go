package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// fairlyInOrder are limits under which keys take turns, and the jobs of a key run in order.
func fairlyInOrder(o pawl.KeyOrder) pawl.Limits { return pawl.Limits{Fair: true, InOrder: o} }

// fairOrderTests are the cases of keys that take turns and whose jobs run in order.
func fairOrderTests() []test {
	tests := []test{
		limitTest("in order", "Keys whose jobs run in order take turns, too.", fairlyInOrder(pawl.OrderContinue), func(f *fixture) {
			f.addMany(50, key("a"))
			f.starts(10)
			f.addMany(5, key("b"))
			f.soon("b", 5)
		}),
		limitTest("in order, by weight", "Keys whose jobs run in order have turns by the weights of their jobs. One job of each runs at a time, the one that became due first.",
			fairlyInOrder(pawl.OrderHold), func(f *fixture) {
				ids := map[string][]pawl.ID{"b": f.addMany(20, key("b")), "a": f.addMany(60, key("a"), weight(4))}
				all := ""
				for range 50 {
					l := f.leases(1)[0]
					equal(f, l.ID, ids[l.Key][0], "next job of key "+l.Key)
					ids[l.Key] = ids[l.Key][1:]
					all += l.Key
					f.ack(l)
				}
				f.turnsBy(all, map[string]int{"a": 4, "b": 1})
				equal(f, len(f.fetch(9)), 2, "jobs of a fetch of nine")
			}),
		limitTest("in order, over retries", "A job that is retried takes another turn, and those of its key wait for it. Other keys do not.",
			fairlyInOrder(pawl.OrderContinue), func(f *fixture) {
				ids := map[string][]pawl.ID{"a": f.addMany(10, key("a")), "b": f.addMany(10, key("b"))}
				begun := make(map[string]int)
				for range 30 {
					l := f.leases(1)[0]
					n := begun[l.Key]
					begun[l.Key]++
					if l.Key == "b" {
						equal(f, l.ID, ids["b"][n], "next job of key b")
						f.ack(l)
						continue
					}
					equal(f, l.ID, ids["a"][n/2], "next job of key a")
					equal(f, l.Attempts, n%2, "its attempts")
					if begun["b"] < 10 && n > begun["b"] {
						f.Fatalf("the starts of the keys are %v", begun)
					}
					if n%2 == 0 {
						f.ok(f.q.Settle(f.Context(), l.Nack(0, errBoom)), "nack")
					} else {
						f.ack(l)
					}
				}
			}),
		limitTest("in order, due first", "Of the jobs of a key, the one that became due first runs first, whatever its priority and its turn.",
			fairlyInOrder(pawl.OrderHold), func(f *fixture) {
				f.add(of("e"), key("x"), after(time.Minute))
				f.add(of("a"), key("x"))
				b := f.add(of("b"), key("x")).ID
				f.add(of("c"), key("x"))
				f.add(of("d"), key("x"), priority(1))
				f.ack(f.lease())
				f.keysAre("when the first job is done", pawl.KeyStats{Key: "x", Ready: 3, Blocked: 2, Head: b})
				f.pass(time.Minute)
				f.add(of("f"), key("x"), priority(9))
				order := ""
				for l := f.lease(); l != nil; l = first(f.fetch(9)) {
					f.ack(l)
					order += l.Kind
				}
				equal(f, order, "bcdef", "order")
			}).alsoRequiring(pawl.Priorities),
		heldTurnsTest(),
		restoredTurnsTest(),
		limitTest("in order, after others", "A job that waits for another one takes its turn when it waits no more, and goes before those of its key that became due later.",
			fairlyInOrder(pawl.OrderContinue), func(f *fixture) {
				before := f.add(key("b"), after(3*time.Second)).ID
				waiting := f.add(key("a"), afterJobs(before)).ID
				f.pass(time.Second)
				later := f.addMany(2, key("a"))
				l := f.lease()
				equal(f, l.ID, later[0], "job of the key while the first one waits")
				f.pass(2 * time.Second)
				f.ack(f.lease())
				equal(f, len(f.fetch(9)), 0, "jobs while one of the key is running")
				f.ack(l)
				for _, want := range []pawl.ID{waiting, later[1]} {
					l := f.lease()
					equal(f, l.ID, want, "next job of the key")
					f.ack(l)
				}
			}).alsoRequiring(pawl.Prerequisites),
		limitTest("in order, over a restart", "A restart forgets neither the turns of keys nor their order.", fairlyInOrder(pawl.OrderHold), func(f *fixture) {
			f.addMany(6, key("a"))
			f.addMany(6, key("b"))
			equal(f, f.starts(2), "ab", "keys")
			equal(f, f.leases(1)[0].Key, "a", "key of the job that is interrupted")
			f.restart()
			equal(f, f.starts(10), "ababababab", "keys after the restart")
		}).needing(alone),
		limitTest("in order, declared later", "An order that is declared where keys take turns holds for the jobs that are there. When turns are no longer declared, the order stays.",
			fairly, func(f *fixture) {
				ids := f.addKeys("aa")
				urgent := f.add(key("a"), priority(1)).ID
				f.settings.Limits = limited(fairlyInOrder(pawl.OrderHold)).Limits
				f.restart()
				for _, want := range ids {
					l := f.lease()
					equal(f, l.ID, want, "job that became due first")
					f.ack(l)
				}
				f.cancel(urgent)
				f.settings.Limits = limited(inOrder(pawl.OrderHold)).Limits
				f.restart()
				f.pass(time.Minute)
				third := f.add(key("a")).ID
				f.pass(time.Minute)
				f.ok(retrying.do(f, urgent, false), "retry")
				for _, want := range []pawl.ID{third, urgent} {
					l := f.lease()
					equal(f, l.ID, want, "next job of the key")
					f.ack(l)
				}
			}).needing(alone).alsoRequiring(pawl.Priorities),
	}
	for i := range tests {
		tests[i] = tests[i].alsoRequiring(pawl.OrderedKeys)
	}
	return tests
}

// restoredTurnsTest is a case of keys that came from another queue.
func restoredTurnsTest() test {
	return limitTest("in order, restored", "Restored keys take turns. A restored job that held its key, as it was leased, dead, or a retry, holds it still, and the others of the key keep their order.",
		fairlyInOrder(pawl.OrderHold), func(f *fixture) {
			f.restorer()
			ids := make(map[string][]pawl.ID)
			for _, k := range []string{"a", "b", "c", "d"} {
				ids[k] = f.addMany(4, key(k))
			}
			for _, l := range f.leases(4) {
				equal(f, l.ID, ids[l.Key][0], "first job of key "+l.Key)
				switch l.Key {
				case "b":
					f.ack(l)
				case "c":
					f.abandon(l)
				case "d":
					f.nack(l, time.Hour)
				}
			}
			stored := f.list(pawl.Filter{})
			f.fresh(f.settings)
			f.restore(stored)
			f.keysAre("after the restore", pawl.KeyStats{Key: "a", Ready: 4, Blocked: 3, Head: ids["a"][0]},
				pawl.KeyStats{Key: "b", Ready: 3, Blocked: 2, Head: ids["b"][1]}, pawl.KeyStats{Key: "c", Ready: 3, Blocked: 3, Head: ids["c"][0], Held: true},
				pawl.KeyStats{Key: "d", Ready: 3, Blocked: 3, Head: ids["d"][0]})
			f.soon("b", 3)
			equal(f, f.starts(1), "a", "key of the last job that nothing holds")
			equal(f, len(f.fetch(9)), 0, "jobs of the keys that are held")
			f.ok(releasing.do(f, ids["c"][0], false), "release")
			equal(f, f.starts(3), "ccc", "keys after the release")
			f.pass(time.Hour)
			for _, want := range ids["d"] {
				l := f.lease()
				equal(f, l.ID, want, "next job of key d")
				f.ack(l)
			}
		})
}

// heldTurnsTest is a case of a key that a dead job holds.
func heldTurnsTest() test {
	return limitTest("in order, held by a dead job", "A key that a dead job holds has no turns, and keeps no other key waiting. Once it is released, it catches up on the turns that it missed.",
		fairlyInOrder(pawl.OrderHold), func(f *fixture) {
			a, b, c := f.addMany(6, key("a")), f.addMany(6, key("b")), f.addMany(6, key("c"))
			l := f.leases(1)[0]
			equal(f, l.ID, a[0], "first job")
			f.abandon(l)
			equal(f, f.starts(4), "bcbc", "keys while one is held")
			f.keysAre("while one is held", pawl.KeyStats{Key: "a", Ready: 5, Blocked: 5, Head: a[0], Held: true},
				pawl.KeyStats{Key: "b", Ready: 4, Blocked: 3, Head: b[2]}, pawl.KeyStats{Key: "c", Ready: 4, Blocked: 3, Head: c[2]})
			equal(f, f.obstructed(a[1], "a job of the held key", pawl.ByHeldKey)[0].Holders[0], a[0], "dead job that holds the key")
			equal(f, f.obstructed(b[3], "a job of another key", pawl.ByTurn)[0].Holders[0], b[2], "job that goes first")
			f.ok(releasing.do(f, a[0], false), "release")
			f.keysAre("after the release", pawl.KeyStats{Key: "a", Ready: 5, Blocked: 4, Head: a[1]},
				pawl.KeyStats{Key: "b", Ready: 4, Blocked: 3, Head: b[2]}, pawl.KeyStats{Key: "c", Ready: 4, Blocked: 3, Head: c[2]})
			equal(f, f.starts(13), "aabcabcabcabc", "keys after the release")
			f.ok(retrying.do(f, a[0], false), "retry")
			equal(f, f.lease().ID, a[0], "last job")
		})
}
