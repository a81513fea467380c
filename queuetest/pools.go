package queuetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/gopawl/pawl"
)

// inPool are limits of a queue in the pool p.
func inPool(running int) pawl.Limits {
	return pawl.Limits{Pool: pawl.Pool{Name: "p", Running: running}}
}

// poolOf are settings in which the queues a and b share a pool of this size.
func poolOf(running int) Settings {
	return Settings{Limits: map[string]pawl.Limits{"a": inPool(running), "b": inPool(running)}}
}

// poolTest is a case of queues a and b that share a pool.
func poolTest(name, rule string, running int, run func(f *fixture)) test {
	return newTest(name, rule, run).with(poolOf(running))
}

// setPool sets the limits of a queue, as an operator.
func (f *fixture) setPool(queue string, l *pawl.Limits) {
	f.Helper()
	f.ok(able[LimitSetter](f).SetLimits(f.Context(), queue, l), "set limits")
}

func poolTests() []test {
	tests := []test{
		poolTest("over queues", "No more jobs of all queues of a pool are leased at a time than its limit.", 3, func(f *fixture) {
			f.stock(3, "a", "b")
			first := f.leases(2, "a")
			equal(f, len(f.fetch(9, "b")), 1, "jobs of the other queue")
			equal(f, len(f.fetch(9, "a", "b")), 0, "jobs of both while the pool is full")
			f.acks(first)
			equal(f, kinds(f.fetch(9, "b")), "bb", "jobs after two of three have ended")
		}),
		poolTest("of other queues", "A pool does not limit queues outside of it, also in one fetch.", 1, func(f *fixture) {
			f.stock(3, "a", "b", "c")
			equal(f, strings.Count(kinds(f.fetch(9, "a", "b", "c")), "c"), 3, "jobs of the queue without a pool")
			equal(f, len(f.fetch(9, "a", "b", "c")), 0, "jobs of another fetch")
		}),
		poolTest("of one fetch", "In a fetch, the queues of a pool take turns for its room.", 4, func(f *fixture) {
			f.stock(9, "a", "b")
			leases := f.fetch(9, "a", "b")
			equal(f, kinds(leases), "abab", "jobs of a fetch of nine")
			f.acks(leases[:3])
			equal(f, kinds(f.fetch(9, "a", "b")), "aba", "jobs of the room that became free")
		}),
		newTest("two of them", "A queue counts for its own pool alone.", func(f *fixture) {
			f.stock(3, "a", "b", "c", "d")
			equal(f, len(f.fetch(20, "a", "b", "c", "d")), 3, "jobs of a fetch from all")
			equal(f, len(f.fetch(20, "c", "d")), 0, "jobs of the larger pool")
		}).with(Settings{Limits: map[string]pawl.Limits{
			"a": inPool(1), "b": inPool(1),
			"c": {Pool: pawl.Pool{Name: "q", Running: 2}}, "d": {Pool: pawl.Pool{Name: "q", Running: 2}},
		}}),
		newTest("with several numbers", "A queue starts a job while fewer jobs of its pool are leased than its own number, so a queue with a lower one leaves the rest to the others.",
			func(f *fixture) {
				f.stock(9, "a", "b")
				equal(f, kinds(f.fetch(9, "a")), "aa", "jobs of the queue with the lower number")
				leases := f.fetch(9, "b")
				equal(f, kinds(leases), "bb", "jobs of the other queue")
				f.acks(leases)
				equal(f, kinds(f.fetch(9, "a", "b")), "bb", "jobs of both, while the lower number is reached")
			}).with(Settings{Limits: map[string]pawl.Limits{"a": inPool(2), "b": inPool(4)}}),
		newTest("beside other limits", "The other limits of a queue hold besides its pool.", func(f *fixture) {
			f.stock(9, "a", "b")
			equal(f, kinds(f.fetch(9, "a")), "a", "jobs of a queue that runs one at a time")
			equal(f, kinds(f.fetch(9, "a", "b")), "bb", "jobs of both")
		}).with(Settings{Limits: map[string]pawl.Limits{"a": {Running: 1, Pool: inPool(3).Pool}, "b": inPool(3)}}),
		newTest("and keys", "A key at its limit leaves the room of the pool to other keys and queues.", func(f *fixture) {
			for _, k := range "xxxy" {
				f.add(on("a"), of("a"), key(string(k)))
			}
			f.stock(2, "b")
			leases := f.fetch(9, "a", "b")
			equal(f, len(leases), 4, "jobs")
			equal(f, strings.Count(keys(leases), "x"), 1, "jobs of the key")
			equal(f, len(f.fetch(9, "a", "b")), 0, "jobs of the key at its limit")
		}).with(Settings{Limits: map[string]pawl.Limits{"a": {RunningPerKey: 1, Pool: inPool(4).Pool}, "b": inPool(4)}}),
		poolTest("and turns of fetches", "No queue of a pool starves: fetches that wait for its room get it in turn, whatever queue they name.", 1, func(f *fixture) {
			f.stock(12, "a", "b")
			l := f.leases(1, "a")[0]
			var got [2]*[]*pawl.Lease
			var calls [2]<-chan error
			fetch := func(i int) {
				got[i], calls[i] = f.fetching(f.patient(), pawl.Request{Queues: []string{[]string{"a", "b"}[i]}, Max: 4})
				f.waits(calls[i], "a fetch while the pool is full")
			}
			fetch(0)
			fetch(1)
			order := ""
			for i := range 12 {
				f.ack(l)
				f.ends(calls[i%2], nil, "the fetch whose turn it is")
				equal(f, len(*got[i%2]), 1, "jobs of it")
				l = (*got[i%2])[0]
				order += l.Kind
				fetch(i % 2)
			}
			equal(f, order, "abababababab", "kinds")
		}),
		poolTest("and drains", "A fetch that drains one queue of a pool waits for the jobs that another one keeps from running.", 1, func(f *fixture) {
			f.stock(1, "a", "b")
			l := f.lease("a")
			leases, call := f.fetching(f.patient(), pawl.Request{Queues: []string{"b"}, Max: 1, Wait: pawl.WaitDrained})
			f.waits(call, "a drain")
			f.ack(l)
			f.ends(call, nil, "the drain")
			f.acks(*leases)
		}),
		poolTest("and statistics", "The statistics have the pool of a queue. Jobs that wait for it are not blocked.", 1, func(f *fixture) {
			f.stock(2, "a")
			f.lease("a")
			stats, err := able[Statter](f).Stats(f.Context())
			f.ok(err, "stats")
			for _, row := range stats.Queues {
				if row.Name == "a" {
					equal(f, row.Limits, inPool(1), "limits")
					equal(f, row.Blocked, 0, "blocked jobs")
				}
			}
		}),
		poolTest("and why", "A job waits for its pool while it is full, whichever queue runs in it.", 2, func(f *fixture) {
			q := able[Explainer](f)
			f.stock(2, "a")
			id := f.add(on("b")).ID
			why := func() (found []pawl.Obstacle) {
				all, err := q.Why(f.Context(), id)
				f.ok(err, "why")
				for _, o := range all {
					if o.What != pawl.ByNoWorker {
						found = append(found, o)
					}
				}
				return found
			}
			equal(f, len(why()), 0, "obstacles")
			leases := f.leases(2, "a")
			all := why()
			equal(f, len(all), 1, "obstacles while the pool is full")
			equal(f, all[0].What, pawl.ByPool, "obstacle")
			equal(f, all[0].String(), `pool "p" is full: 2 of 2 jobs of its queues run`, "in words")
			f.ack(leases[0])
			equal(f, len(why()), 0, "obstacles after an ack")
		}),
	}
	for _, e := range ends {
		tests = append(tests, poolTest("end with "+e.name, "However a lease ends, a fetch that waits for another queue of its pool gets a job at once.", 1, func(f *fixture) {
			f.add(on("a"))
			l := f.lease("a")
			id := f.add(on("b")).ID
			leases, call := f.fetching(f.patient(), pawl.Request{Queues: []string{"b"}, Max: 1})
			f.waits(call, "a fetch while the pool is full")
			e.end(f, l)
			f.gets(call, leases, id, "the fetch that waited")
		}))
	}
	return append(tests, changedPoolTests()...)
}

func changedPoolTests() []test {
	return []test{
		poolTest("survive a restart", "A pool holds after a restart that declares none. Leases that the restart took back count no more.", 2, func(f *fixture) {
			f.stock(3, "a", "b")
			f.leases(2, "a")
			f.settings.Limits = nil
			f.restart()
			equal(f, len(f.fetch(9, "b")), 2, "jobs after the restart")
			equal(f, len(f.fetch(9, "a", "b")), 0, "jobs of another fetch")
		}).needing(alone),
		poolTest("that change", "A pool that is declared anew holds for the jobs that are there: larger, smaller, without a queue, and removed.", 2, func(f *fixture) {
			f.stock(5, "a", "b")
			for _, step := range []struct {
				limits map[string]pawl.Limits
				want   int
			}{
				{poolOf(2).Limits, 2},
				{poolOf(6).Limits, 6},
				{poolOf(1).Limits, 1},
				{map[string]pawl.Limits{"a": {}}, 6},
				{map[string]pawl.Limits{"a": inPool(1)}, 1},
				{map[string]pawl.Limits{"a": {}, "b": {}}, 10},
			} {
				f.settings.Limits = step.limits
				f.restart()
				leases := f.fetch(20, "a", "b")
				equal(f, len(leases), step.want, fmt.Sprintf("jobs with the limits %+v", step.limits))
				for _, l := range leases {
					f.release(l)
				}
			}
		}).needing(alone),
		poolTest("set by an operator", "An operator can set another number for a queue of a pool. It holds at once, until a reset.", 1, func(f *fixture) {
			able[LimitSetter](f)
			f.stock(5, "a", "b")
			f.leases(1, "a")
			leases, call := f.fetching(f.patient(), pawl.Request{Queues: []string{"b"}, Max: 9})
			f.waits(call, "a fetch while the pool is full")
			larger := inPool(3)
			f.setPool("b", &larger)
			f.ends(call, nil, "the fetch that waited")
			equal(f, kinds(*leases), "bb", "jobs of the queue with the higher number")
			equal(f, len(f.fetch(9, "a")), 0, "jobs of the other queue")
			f.setPool("b", nil)
			f.acks(*leases)
			equal(f, len(f.fetch(9, "b")), 0, "jobs after the reset")
		}),
		poolTest("that a queue leaves", "If a queue leaves a pool, its running jobs leave room to the others: a fetch that waits for one of them gets a job at once.", 1, func(f *fixture) {
			able[LimitSetter](f)
			f.stock(5, "a", "b")
			f.leases(1, "a")
			leases, call := f.fetching(f.patient(), pawl.Request{Queues: []string{"b"}, Max: 9})
			f.waits(call, "a fetch while the pool is full")
			f.setPool("a", &pawl.Limits{Running: 2})
			f.ends(call, nil, "the fetch that waited")
			equal(f, kinds(*leases), "b", "jobs of the other queue")
			f.setPool("a", nil)
			f.acks(*leases)
			equal(f, len(f.fetch(9, "b")), 0, "jobs when it is back, with its running job")
		}),
		poolTest("that are refused", "SetLimits refuses a pool that makes no sense. Nothing changes.", 1, func(f *fixture) {
			q := able[LimitSetter](f)
			f.stock(2, "a")
			for _, bad := range []pawl.Pool{{Name: "p"}, {Running: 1}, {Name: "p", Running: -1}, {Name: "p", Running: pawl.MaxRunning + 1},
				{Name: "a\x00b", Running: 1}, {Name: strings.Repeat("p", pawl.MaxPoolName+1), Running: 1}} {
				f.is(q.SetLimits(f.Context(), "a", &pawl.Limits{Pool: bad}), pawl.ErrInvalid, fmt.Sprintf("the pool %+v", bad))
			}
			equal(f, len(f.fetch(9, "a")), 1, "jobs")
		}),
		poolTest("with a long name", "The name of a pool may have 128 bytes. Pools of other names are other pools, and a reset returns to the declared one.", 1, func(f *fixture) {
			able[LimitSetter](f)
			long := strings.Repeat("p", pawl.MaxPoolName)
			for _, name := range []string{long, long[:1] + "q"} {
				f.setPool("b", &pawl.Limits{Pool: pawl.Pool{Name: name, Running: 1}})
				f.stock(2, "a", "b")
				leases := f.fetch(9, "a", "b")
				equal(f, len(leases), 2, "jobs of both")
				equal(f, len(f.fetch(9, "a", "b")), 0, "jobs of another fetch")
				f.acks(leases)
			}
			f.setPool("b", nil)
			equal(f, len(f.fetch(9, "a", "b")), 1, "jobs after a reset")
		}),
	}
}

// poolsOfSeveralTests are the cases of several clients.
func poolsOfSeveralTests() []test {
	tests := []test{
		poolTest("a pool", "A pool counts the leases of all clients. When a lease of one client ends, a fetch of another one that waits for another queue of the pool gets a job, within a minute.",
			2, func(f *fixture) {
				other := f.another()
				f.stock(3, "a", "b")
				l := f.leases(1, "a")[0]
				equal(f, len(other.fetch(9, "b")), 1, "jobs of the other client")
				leases, call := other.fetching(f.patient(), pawl.Request{Queues: []string{"b"}, Max: 9})
				f.waits(call, "the fetch of the other client")
				f.ack(l)
				f.hears(call, nil, "the fetch of the other client")
				equal(f, kinds(*leases), "b", "jobs")
				equal(f, len(f.fetch(9, "a")), 0, "jobs for the first client")
			}),
		poolTest("turns in a pool", "No queue of a pool starves, although the client that ends a lease has a fetch that waits for the room: the queues of all clients get it in turn.",
			1, func(f *fixture) {
				clients, queues := []*fixture{f.another(), f.another()}, []string{"a", "b"}
				f.stock(8, queues...)
				l, holder := clients[0].leases(1, "a")[0], clients[0]
				var got [2]*[]*pawl.Lease
				var calls [2]<-chan error
				fetch := func(i int) {
					got[i], calls[i] = clients[i].fetching(f.patient(), pawl.Request{Queues: queues[i : i+1], Max: 4})
					f.waits(calls[i], "a fetch while the pool is full")
				}
				fetch(0)
				fetch(1)
				for i := range 8 {
					holder.ack(l)
					f.hears(calls[i%2], nil, "the fetch whose turn it is")
					f.waits(calls[1-i%2], "the other fetch")
					equal(f, kinds(*got[i%2]), queues[i%2], "jobs of it")
					l, holder = (*got[i%2])[0], clients[i%2]
					fetch(i % 2)
				}
			}),
		poolTest("a fetch that left a pool", "A fetch that has waited for room and is gone takes none: another client gets it, within a minute.", 1, func(f *fixture) {
			other := f.another()
			f.stock(3, "a", "b")
			l := f.leases(1, "a")[0]
			gone, leave := context.WithCancel(f.Context())
			_, left := other.fetching(gone, pawl.Request{Queues: []string{"b"}, Max: 1})
			f.waits(left, "the fetch of the other client")
			leave()
			f.hears(left, context.Canceled, "the fetch that leaves")
			leases, call := f.fetching(f.patient(), pawl.Request{Queues: []string{"a"}, Max: 1})
			f.ack(l)
			f.hears(call, nil, "the fetch that waits")
			equal(f, kinds(*leases), "a", "jobs of it")
		}),
		poolTest("pools at once", "However many clients fetch at once, no more jobs of a pool are leased than its limit.", 3, func(f *fixture) {
			const rounds = 30
			f.stock(3*rounds, "a", "b")
			clients := []*fixture{f.another(), f.another()} // which have no lock in common but that of the pool
			var leases [2][]*pawl.Lease
			for range rounds {
				var wg sync.WaitGroup
				for i, c := range clients {
					wg.Go(func() {
						var err error
						leases[i], err = c.q.Fetch(f.patient(), pawl.Request{Queues: []string{[]string{"a", "b"}[i]}, Max: 9, Wait: pawl.WaitNot})
						if err != nil && !errors.Is(err, pawl.ErrEmpty) {
							f.Errorf("fetch: %v", err)
						}
					})
				}
				wg.Wait()
				equal(f, len(leases[0])+len(leases[1]), 3, "jobs of two fetches at once")
				for i, c := range clients {
					c.acks(leases[i])
				}
			}
		}),
	}
	for i := range tests {
		tests[i] = tests[i].alsoRequiring(pawl.LimitKeys | pawl.SharedPools)
	}
	return tests
}
