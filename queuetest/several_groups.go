package queuetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

var groupsOfSeveralTests = []test{
	newTest("a group", "A group counts its members, whichever client moves them. Its end enqueues the callback, which any client may run.", func(f *fixture) {
		other := f.another()
		f.makeGroup(withCallbacks("g"))
		for range 2 {
			f.add(inGroup("g"))
			other.add(inGroup("g"))
		}
		f.ack(f.fetch(1)[0])
		other.abandon(other.fetch(1)[0])
		f.groupIs("g", "4 2 1 1 0", "by the first client")
		other.groupIs("g", "4 2 1 1 0", "by the other client")
		other.closeGroup("g")
		f.ack(f.fetch(1)[0])
		other.ack(other.fetch(1)[0])
		f.callbacksAre("g", true, false, "at the end")
		f.acks(f.leases(1, "callbacks"))
		dead := f.list(pawl.Filter{State: pawl.Dead})
		f.retry(dead[0].ID, false)
		other.ack(other.lease())
		equal(f, len(other.leases(1, "callbacks")), 1, "callbacks of the success")
		other.groupIs("g", "4 0 4 0 0", "after the retry")
	}).needing(mutating).alsoRequiring(pawl.Groups),
	newTest("a drain and a group", "A drain of one client gets the callback of a group whose last member another client ends.", func(f *fixture) {
		other := f.another()
		f.makeGroup(withCallbacks("g"))
		f.add(inGroup("g"))
		f.closeGroup("g")
		l := f.lease()
		r := pawl.Request{Queues: []string{"default", "callbacks"}, Max: 2, Wait: pawl.WaitFinished}
		leases, call := other.fetching(f.patient(), r)
		other.waits(call, "while the first client runs the last member")
		f.ack(l)
		other.hears(call, nil, "the drain")
		equal(f, len(*leases), 2, "callbacks")
	}).needing(mutating).alsoRequiring(pawl.Groups),
	newTest("a group at once",
		"Of many clients that add and end members of two groups at once, and close them, each move counts once. Each callback is enqueued once.",
		func(f *fixture) {
			const each = 12
			clients := []*fixture{f, f.another(), f.another()}
			names := []string{"a", "b"}
			for _, name := range names {
				f.makeGroup(withCallbacks(name))
			}
			var wg sync.WaitGroup
			for i, c := range clients {
				for n := range each {
					wg.Go(func() {
						jobs := []*pawl.Envelope{{Kind: "k", Group: names[n%2]}, {Kind: "k", Group: names[(n+i+1)%2]}}
						if err := c.try(jobs...); err != nil {
							f.Errorf("enqueue: %v", err)
						}
					})
				}
			}
			wg.Wait()
			left := make(map[string]int)
			for _, e := range f.list(pawl.Filter{}) {
				left[e.Group]++
			}
			equal(f, left["a"]+left["b"], 2*each*len(clients), "members")
			for _, name := range names {
				f.groupIs(name, fmt.Sprint(left[name], left[name], 0, 0, 0), "before their ends")
			}
			for i, c := range clients {
				leases := c.leases(2 * each)
				for n := range leases {
					wg.Go(func() {
						if err := c.q.Settle(f.Context(), leases[n].Ack()); err != nil {
							f.Errorf("ack: %v", err)
						}
						if n == each && i < len(names) {
							c.closeGroup(names[i])
						}
					})
				}
			}
			wg.Wait()
			for _, name := range names {
				f.groupIs(name, fmt.Sprint(left[name], 0, left[name], 0, 0), "at the end")
				f.callbacksAre(name, true, true, "at the end")
			}
		}).needing(mutating).alsoRequiring(pawl.Groups),
}

// limitedOfSeveral is a case of several clients of a queue with limits.
func limitedOfSeveral(name, rule string, l pawl.Limits, run func(f *fixture)) test {
	return limitTest(name, rule, l, run).alsoRequiring(pawl.LimitKeys)
}

var limitsOfSeveralTests = []test{
	limitedOfSeveral("limits", "Limits count the leases of all clients. When a lease of one client ends, a fetch of another one that waits gets the next job, within a minute.",
		pawl.Limits{Running: 3, RunningPerKey: 1}, func(f *fixture) {
			other := f.another()
			ids := f.addKeys("aab")
			l := f.fetch(1)[0]
			equal(f, keys(other.fetch(9)), "b", "keys of the other client")
			leases, call := other.fetching(f.patient(), pawl.Request{Max: 9})
			f.waits(call, "the fetch of the other client")
			f.ack(l)
			f.hears(call, nil, "the fetch of the other client")
			equal(f, (*leases)[0].ID, ids[1], "job")
			f.addKeys("cd")
			equal(f, len(other.fetch(9)), 1, "jobs up to the limit of the queue")
			equal(f, len(f.fetch(9)), 0, "jobs for the first client")
		}),
	limitedOfSeveral("limits at once", "However many clients fetch at once, no more jobs of a queue, and of a key, are leased than their limits, and every job is run to its end.",
		pawl.Limits{Running: 5, RunningPerKey: 2}, func(f *fixture) {
			const jobs = 90
			var mu sync.Mutex
			running := make(map[string]int)
			count := func(key string, n int) {
				mu.Lock()
				defer mu.Unlock()
				running[key] += n
				running[""] += n
				if running[""] > 5 || running[key] > 2 {
					f.Errorf("%d jobs run, %d of key %s", running[""], running[key], key)
				}
			}
			for i := range jobs {
				f.add(key(string(rune('a' + i%4))))
			}
			var acked atomic.Int32
			clients := []*fixture{f.another(), f.another(), f.another()}
			f.drain(clients, 6, pawl.Request{Max: 4}, func(q pawl.Queue, _ int, leases []*pawl.Lease) {
				for _, l := range leases {
					count(l.Key, 1)
				}
				for _, l := range leases {
					count(l.Key, -1) // before the ack, which lets others run
					if err := q.Settle(f.Context(), l.Ack()); err != nil {
						f.Errorf("ack: %v", err)
					}
					acked.Add(1)
				}
			})
			equal(f, acked.Load(), jobs, "jobs acked")
		}),
	limitedOfSeveral("a rate", "The starts of all clients count for a rate.", pawl.Limits{RatePerKey: pawl.Rate{Starts: 3, Per: time.Minute}}, func(f *fixture) {
		other := f.another()
		ids := f.addKeys("aa")
		began := time.Now()
		f.ack(f.fetch(9)[0])
		equal(f, len(other.fetch(9)), 0, "jobs for the other client")
		leases, call := other.fetching(f.patient(), pawl.Request{Max: 9})
		f.hears(call, nil, "the fetch of the other client")
		equal(f, (*leases)[0].ID, ids[1], "job")
		equal(f, time.Since(began), 20*time.Second, "time of the second start")
	}),
	limitedOfSeveral("limits that an operator sets", "Limits that an operator sets or resets through one client are in force for all, within a minute.",
		pawl.Limits{Running: 1}, func(f *fixture) {
			able[LimitSetter](f)
			other := f.another()
			f.add()
			f.lease()
			id := f.add().ID
			leases, call := other.fetching(f.patient(), pawl.Request{Max: 9})
			f.waits(call, "the fetch of the other client")
			f.override(pawl.Limits{Running: 2})
			f.hears(call, nil, "the fetch of the other client")
			equal(f, (*leases)[0].ID, id, "job")
			other.limitsAre(pawl.Limits{Running: 2}, &pawl.Limits{Running: 1}, "as another client sees them")
			f.ack((*leases)[0])
			f.add()
			other.reset()
			equal(f, len(f.fetch(9)), 0, "jobs after the reset")
			f.limitsAre(pawl.Limits{Running: 1}, nil, "after the reset")
		}),
	limitedOfSeveral("bounds", "Of the callers of all clients, as many succeed as there is room for.", pawl.Limits{MaxWaiting: 11, MaxWaitingPerKey: 4}, func(f *fixture) {
		var stored atomic.Int32
		var wg sync.WaitGroup
		for _, client := range []*fixture{f, f.another(), f.another()} {
			for i := range 20 {
				wg.Go(func() {
					switch _, err := client.q.Enqueue(f.Context(), keyed(string(rune('a'+i%2))), plain()); {
					case err == nil:
						stored.Add(2)
					case !errors.Is(err, pawl.ErrQueueFull):
						f.Errorf("enqueue: %v", err)
					}
				})
			}
		}
		wg.Wait()
		equal(f, stored.Load(), 10, "jobs stored")
		equal(f, len(f.list(pawl.Filter{})), 10, "jobs")
	}).alsoRequiring(pawl.BoundedQueues),
	limitedOfSeveral("a bound that an operator sets", "A bound that one client sets holds for the next enqueue of another one, which counts the jobs of all.", pawl.Limits{}, func(f *fixture) {
		able[LimitSetter](f)
		other := f.another()
		f.add(key("a"))
		other.add(key("a"))
		f.override(pawl.Limits{MaxWaiting: 2})
		other.refuses("beyond a bound of the queue", plain())
		other.override(pawl.Limits{MaxWaitingPerKey: 2})
		f.refuses("beyond a bound of the key", keyed("a"))
		f.add(key("b"))
		other.reset()
		f.add(key("a"))
	}).alsoRequiring(pawl.BoundedQueues),
}
