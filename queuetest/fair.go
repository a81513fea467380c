package queuetest

import (
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// fairly are limits under which keys take turns.
var fairly = pawl.Limits{Fair: true}

// addMany enqueues n jobs in one batch.
func (f *fixture) addMany(n int, changes ...func(*pawl.Envelope)) (ids []pawl.ID) {
	f.Helper()
	batch := make([]*pawl.Envelope, n)
	for i := range batch {
		batch[i] = &pawl.Envelope{Kind: "k"}
		for _, change := range changes {
			change(batch[i])
		}
	}
	for _, done := range f.enqueue(batch...) {
		ids = append(ids, done.ID)
	}
	return ids
}

// starts runs n jobs one after the other and returns their keys, with - for none.
func (f *fixture) starts(n int, kinds ...string) (all string) {
	f.Helper()
	for range n {
		l := first(f.fetchKinds(1, kinds...))
		if l == nil {
			f.Fatalf("there are only these jobs: %s", all)
		}
		all += l.Key
		if l.Key == "" {
			all += "-"
		}
		f.ack(l)
	}
	return all
}

// soon requires that all n jobs of a key are among the next 2n starts, and take turns with those of another key.
func (f *fixture) soon(key string, n int) {
	f.Helper()
	all := f.starts(2 * n)
	if strings.Count(all, key) != n {
		f.Fatalf("the next %d starts are %s, and not all %d jobs of key %s are among them", 2*n, all, n, key)
	}
	for i := range all {
		if before := strings.Count(all[:i], key); before > i/2+1 {
			f.Fatalf("%d of the next %d starts are of key %s: %s", before, i, key, all)
		}
	}
}

// fairTests are the cases of keys that take turns.
func fairTests() []test {
	return append(slices.Concat(fairWeightTests(), fairOrderTests()), []test{
		limitTest("ten beside many", "A key with ten jobs beside one with very many is done within twenty starts, whenever it comes.", fairly, func(f *fixture) {
			f.addMany(1000, key("a"))
			f.starts(100)
			f.addMany(10, key("b"))
			f.soon("b", 10)
			f.addMany(10, key("c"))
			f.soon("c", 10)
		}),
		limitTest("shares", "While several keys have ready jobs, the numbers of their starts differ by at most one. The jobs of a key keep their order.",
			fairly, func(f *fixture) {
				order := make(map[string][]pawl.ID)
				for _, k := range []string{"a", "b", "c"} {
					order[k] = f.addMany(20, key(k))
				}
				begun := make(map[string]int)
				for range 60 {
					l := f.leases(1)[0]
					equal(f, l.ID, order[l.Key][begun[l.Key]], "next job of key "+l.Key)
					begun[l.Key]++
					if least, most := min(begun["a"], begun["b"], begun["c"]), max(begun["a"], begun["b"], begun["c"]); most > least+1 {
						f.Fatalf("the starts of the keys are %v", begun)
					}
					f.ack(l)
				}
			}),
		limitTest("without a key", "Jobs without a key take turns together, as those of one key.", fairly, func(f *fixture) {
			f.addMany(50)
			f.starts(5)
			f.addMany(5, key("b"))
			f.soon("b", 5)
			f.addMany(50, key("c"))
			f.addMany(5)
			f.starts(80)
			f.addMany(5)
			f.soon("-", 5)
		}),
		limitTest("and priority", "Priority comes before turns. Starts of one priority change no turns of another.", fairly, func(f *fixture) {
			f.addMany(50, key("a"))
			f.addMany(2, key("a"), priority(1))
			f.add(key("c"), priority(1))
			equal(f, f.starts(3), "aca", "jobs of the higher priority")
			f.addMany(5, key("b"))
			f.soon("b", 5)
		}).alsoRequiring(pawl.Priorities),
		limitTest("and kinds", "A fetch of some kinds gives the keys of these turns, and moves the turns of other kinds little.", fairly, func(f *fixture) {
			f.addMany(50, key("a"), of("x"))
			f.add(key("a"), of("y"))
			f.starts(1, "y")
			f.addMany(4, key("b"), of("x"))
			equal(f, strings.Count(f.starts(9, "x"), "b"), 4, "jobs of the new key among nine")
		}),
		limitTest("retries", "A retry takes another turn.", fairly, func(f *fixture) {
			f.addMany(20, key("a"))
			for _, l := range f.leases(20) {
				f.ok(f.q.Settle(f.Context(), l.Nack(0, errBoom)), "nack")
			}
			f.addMany(5, key("b"))
			f.soon("b", 5)
		}),
		limitTest("delayed jobs", "A delayed job takes its turn when it becomes ready, however long it has waited.", fairly, func(f *fixture) {
			f.addMany(20, key("a"), func(e *pawl.Envelope) { e.Delay = time.Hour })
			f.addMany(20, key("b"))
			f.starts(20)
			f.addMany(5, key("b"))
			f.pass(time.Hour)
			f.soon("b", 5)
		}),
		limitTest("interrupted jobs", "A job that is released, or whose lease expires, keeps its turn.", fairly, func(f *fixture) {
			ids := f.addKeys("aabb")
			l := f.leases(1)[0]
			equal(f, l.ID, ids[0], "first job")
			f.ok(f.q.Settle(f.Context(), l.Release()), "release")
			l = f.leases(1)[0]
			equal(f, l.ID, ids[0], "job after its release")
			f.expire(l)
			equal(f, f.leases(1)[0].ID, ids[0], "job after the expiry of its lease")
		}),
		limitTest("a key at its limit", "A key at a limit of its own keeps no other key waiting. Those that come in meanwhile take turns with the keys that run.",
			pawl.Limits{Fair: true, RunningPerKey: 1}, func(f *fixture) {
				f.addMany(20, key("a"))
				held := f.leases(1)[0]
				f.addMany(40, key("b"))
				f.starts(20)
				f.addMany(5, key("c"))
				f.soon("c", 5)
				f.ack(held)
				equal(f, keys(f.fetch(9)), "ab", "keys of a fetch of nine, when it has room again")
			}),
		limitTest("removed jobs", "A key has no turns behind those of jobs that were removed.", fairly, func(f *fixture) {
			for _, k := range []string{"a", ""} {
				ids := f.addMany(50, key(k))
				f.addMany(50, key("b"))
				for _, id := range ids {
					f.cancel(id)
				}
				f.add(key(k))
				f.soon(strings.Repeat("-", 1-len(k))+k, 1)
				f.starts(49)
			}
		}),
		limitTest("and idempotency keys", "A job that its idempotency key blocked runs before later jobs of its key.", fairly, func(f *fixture) {
			once := func(e *pawl.Envelope) { e.IdempotencyKey = "x" }
			holder := f.add(key("h"), once)
			held := f.leases(1)[0]
			equal(f, held.ID, holder.ID, "first job")
			before := f.addMany(20, key("a"))
			blocked := f.add(key("a"), once)
			for _, id := range before {
				f.cancel(id)
			}
			equal(f, len(f.fetch(9)), 0, "jobs of a fetch while the idempotency key is leased")
			f.ok(f.q.Settle(f.Context(), held.Nack(time.Hour, errBoom)), "nack")
			later := f.add(key("a"))
			l := f.leases(2)
			equal(f, l[0].ID, blocked.ID, "first job")
			equal(f, l[1].ID, later.ID, "second job")
		}).alsoRequiring(pawl.IdempotencyKeys),
		limitTest("after others", "A job that waits for another one takes its turn when it waits no more.", fairly, func(f *fixture) {
			before := f.add(key("c"), priority(1), func(e *pawl.Envelope) { e.Delay = time.Hour }).ID
			f.addMany(20, key("b"), afterJobs(before))
			f.addMany(20, key("a"))
			f.starts(20)
			f.pass(time.Hour)
			equal(f, f.starts(1), "c", "key of the other job")
			f.addMany(5, key("c"))
			f.soon("c", 5)
		}).alsoRequiring(pawl.Prerequisites | pawl.Priorities),
		limitTest("over a restart", "A restart forgets no turns.", fairly, func(f *fixture) {
			f.addMany(40, key("a"))
			f.starts(20)
			f.restart()
			f.addMany(5, key("b"))
			f.addMany(5, key("a"))
			f.soon("b", 5)
			f.restart()
			f.addMany(5, key("c"))
			f.soon("c", 5)
		}).needing(alone),
		limitTest("declared later", "Jobs that are ready when turns are declared, or no longer declared, run before those that become ready later.",
			pawl.Limits{}, func(f *fixture) {
				f.addKeys("aaab")
				f.settings.Limits = limited(fairly).Limits
				f.restart()
				f.addKeys("ccd")
				equal(f, f.starts(6), "aaabcd", "keys")
				f.addKeys("ccca")
				f.pass(time.Second)
				f.settings.Limits = limited(pawl.Limits{}).Limits
				f.restart()
				f.addKeys("eb")
				l := f.fetch(2)
				equal(f, keys(l), "ca", "keys that took turns")
				f.pass(time.Second)
				f.ok(f.q.Settle(f.Context(), l[0].Nack(0, errBoom), l[1].Release()), "settle")
				equal(f, f.starts(7), "acccebc", "keys")
			}).needing(alone),
	}...)
}
