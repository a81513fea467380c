package queuetest

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// Rester is a queue whose keys can rest, see pawl.Throttle.
type Rester interface {
	// EndRest ends the rest of a key. It does nothing if the key does not rest. A bad name gives
	// pawl.ErrInvalid.
	EndRest(ctx context.Context, queue, key string) error
}

// throttle ends a lease, and lets its key or its queue rest for a time.
func (f *fixture) throttle(l *pawl.Lease, d time.Duration, rest pawl.Rest) {
	f.Helper()
	f.ok(f.q.Settle(f.Context(), l.Throttle(d, rest)), "throttle")
}

func (f *fixture) endRest(queue, key string) {
	f.Helper()
	f.ok(able[Rester](f).EndRest(f.Context(), queue, key), "end the rest of a key")
}

// restTests are cases of keys and queues that rest.
func restTests() []test {
	many := pawl.Limits{RunningPerKey: 9}
	wait := pawl.Request{Max: 9}
	return []test{
		limitTest("of a key", "After a throttle no job of the key starts for the time that was given. Other keys do not rest, nor jobs without a key. Then the jobs start in their old order.",
			many, func(f *fixture) {
				ids := f.addKeys("aaab")
				free := f.add().ID
				l := f.fetch(1)[0]
				began := time.Now()
				f.throttle(l, time.Minute, pawl.ThisKey)
				e := f.must(ids[0])
				equal(f, e.State, pawl.Ready, "state of the job")
				equal(f, e.Attempts+e.Failures+e.Crashes, 0, "attempts, failures, and crashes of it")
				leases := f.fetch(9)
				equal(f, len(leases), 2, "jobs of a fetch")
				equal(f, leases[0].ID, ids[3], "job of another key")
				equal(f, leases[1].ID, free, "job without a key")
				f.acks(leases)
				id := f.add(key("a")).ID
				leases, err := f.q.Fetch(f.patient(), wait)
				f.ok(err, "fetch")
				equal(f, time.Since(began), time.Minute, "time of the next start")
				for i, want := range []pawl.ID{ids[0], ids[1], ids[2], id} {
					equal(f, leases[i].ID, want, "job")
				}
			}),
		limitTest("of a queue", "After a throttle of its queue no job of the queue starts for the time that was given. Other queues do not rest. A queue needs no limits for that.",
			pawl.Limits{}, func(f *fixture) {
				ids := f.addKeys("ab")
				other := f.add(on("x")).ID
				l := f.fetch(1)[0]
				began := time.Now()
				f.throttle(l, time.Minute, pawl.ThisQueue)
				equal(f, len(f.fetch(9)), 0, "jobs of a fetch")
				leases := f.fetch(9, "default", "x")
				equal(f, len(leases), 1, "jobs of a fetch from both")
				equal(f, leases[0].ID, other, "job of another queue")
				leases, err := f.q.Fetch(f.patient(), wait)
				f.ok(err, "fetch")
				equal(f, time.Since(began), time.Minute, "time of the next start")
				equal(f, leases[0].ID, ids[0], "job")
				equal(f, len(leases), 2, "jobs")
			}),
		limitTest("of several throttles", "The throttle that ends last counts. One without a delay lets nothing rest.", many, func(f *fixture) {
			f.addKeys("aaa")
			leases := f.fetch(9)
			for i, d := range []time.Duration{10 * time.Second, time.Minute, 30 * time.Second} {
				f.throttle(leases[i], d, pawl.ThisKey)
			}
			f.pass(time.Minute - 1)
			equal(f, len(f.fetch(9)), 0, "jobs before the end")
			f.pass(1)
			leases = f.fetch(9)
			equal(f, len(leases), 3, "jobs at the end")
			f.throttle(leases[0], -time.Second, pawl.ThisKey)
			f.throttle(leases[1], 0, pawl.ThisQueue)
			equal(f, len(f.fetch(9)), 2, "jobs after a throttle without a delay")
		}),
		limitTest("with a rate, and an order", "A job starts when its key rests no more and its rate has room. It keeps its turn meanwhile.",
			pawl.Limits{InOrder: pawl.OrderHold, RatePerKey: pawl.Rate{Starts: 3, Per: time.Minute}}, func(f *fixture) { // one each 20 s
				ids := f.addKeys("aa")
				f.throttle(f.lease(), 5*time.Second, pawl.ThisKey)
				f.pass(5 * time.Second)
				equal(f, len(f.fetch(9)), 0, "jobs while the rate is used up")
				f.pass(15 * time.Second)
				l := f.lease()
				equal(f, l.ID, ids[0], "job")
				f.throttle(l, time.Minute, pawl.ThisKey)
				f.pass(time.Minute - 1)
				f.add(key("a"), priority(9))
				equal(f, len(f.fetch(9)), 0, "jobs while the key rests")
				f.pass(1)
				l = f.lease()
				equal(f, l.ID, ids[0], "job that runs then")
				f.ack(l)
			}).alsoRequiring(pawl.OrderedKeys),
		limitTest("that somebody ends", "An operator can end a rest, of a key and of a queue. A fetch that waits gets a job at once.", many, func(f *fixture) {
			q := able[Rester](f)
			p := f.pauser()
			id := f.addKeys("a")[0]
			f.throttle(f.lease(), time.Hour, pawl.ThisKey)
			leases, call := f.fetching(f.patient(), pawl.Request{Max: 1})
			f.waits(call, "a fetch while the key rests")
			f.endRest("default", "b")
			f.endRest("never", "a")
			f.waits(call, "a fetch after the end of no rest")
			f.endRest("default", "a")
			f.throttle(f.gets(call, leases, id, "the fetch that waited"), time.Hour, pawl.ThisQueue)
			leases, call = f.fetching(f.patient(), pawl.Request{Max: 1})
			f.waits(call, "a fetch while the queue rests")
			f.ok(p.Resume(f.Context(), "default"), "resume")
			f.gets(call, leases, id, "the fetch that waited")
			for _, bad := range [][2]string{{"", "a"}, {"default", ""}, {"default", string(make([]byte, 256))}} {
				f.invalid(q.EndRest(f.Context(), bad[0], bad[1]), fmt.Sprintf("the end of a rest of %q", bad))
			}
		}),
		limitTest("that are refused", "A throttle of a key is refused if the job has none, or if its queue has no limits per key. The job stays leased.", many, func(f *fixture) {
			f.add()
			f.add(key("a"), on("x"))
			leases := f.fetch(9, "default", "x")
			unchanged := f.unchanged()
			for _, l := range leases {
				f.is(f.failed(f.q.Settle(f.Context(), l.Throttle(time.Minute, pawl.ThisKey)))[l], pawl.ErrInvalid, "throttle")
			}
			f.is(f.q.Settle(f.Context(), leases[0].Throttle(time.Minute, "others")), pawl.ErrInvalid, "a throttle of others")
			wrong := leases[0].Release()
			wrong.Rest = pawl.ThisKey
			f.is(f.q.Settle(f.Context(), wrong), pawl.ErrInvalid, "a release with a rest")
			unchanged("after the refusals")
			f.acks(leases)
			f.is(f.failed(f.q.Settle(f.Context(), leases[0].Throttle(time.Minute, pawl.ThisKey)))[leases[0]], pawl.ErrLeaseLost, "throttle of a lease that has ended")
			f.add(on("x"))
			equal(f, len(f.fetch(9, "x")), 1, "jobs of the other queue")
		}),
		limitTest("of a cancelled job", "A job that is cancelled becomes dead by a throttle, and its key rests.", many, func(f *fixture) {
			ids := f.addKeys("aa")
			l := f.fetch(1)[0]
			f.cancel(ids[0])
			f.throttle(l, time.Minute, pawl.ThisKey)
			f.diedOf(ids[0], pawl.ReasonCancelled, "the job")
			equal(f, len(f.fetch(9)), 0, "jobs while the key rests")
			f.pass(time.Minute)
			equal(f, f.lease().ID, ids[1], "job that runs then")
		}),
		limitTest("survive a restart", "A rest goes on over a restart, of a key without jobs too.", many, func(f *fixture) {
			f.addKeys("a")
			f.throttle(f.lease(), time.Minute, pawl.ThisKey)
			f.pass(30 * time.Second)
			f.restart()
			f.add(on("x"))
			f.throttle(f.lease("x"), time.Minute, pawl.ThisQueue)
			f.restart()
			f.addKeys("a")
			equal(f, len(f.fetch(9, "default", "x")), 0, "jobs after the restart")
			f.pass(30 * time.Second)
			leases, err := f.q.Fetch(f.patient(), wait)
			f.ok(err, "fetch")
			equal(f, len(leases), 2, "jobs of the key when it rests no more")
			equal(f, len(f.fetch(9, "x")), 0, "jobs of the queue")
			f.pass(30 * time.Second)
			f.lease("x")
		}).needing(alone),
		limitTest("are seen", "Why, the keys of a queue, and its counts say until when a key or a queue rests.", many, func(f *fixture) {
			able[Explainer](f)
			ids := f.addKeys("aa")
			began := time.Now()
			f.throttle(f.fetch(1)[0], time.Minute, pawl.ThisKey)
			equal(f, len(f.fetch(9)), 0, "jobs")
			f.sameTime(f.obstructed(ids[1], "a job whose key rests", pawl.ByKeyRest)[0].Until, began.Add(time.Minute), "its end")
			f.keysAre("while the key rests", pawl.KeyStats{Key: "a", Ready: 2, Blocked: 2, Next: began.Add(time.Minute), Rests: began.Add(time.Minute)})
			f.endRest("default", "a")
			f.obstructed(ids[1], "a job whose key rests no more")
			f.throttle(f.fetch(1)[0], time.Minute, pawl.ThisQueue)
			f.sameTime(f.obstructed(ids[1], "a job whose queue rests", pawl.ByQueueRest)[0].Until, began.Add(time.Minute), "its end")
			f.sameTime(f.stats("default").Rests, began.Add(time.Minute), "end of the rest of the queue")
			f.pass(time.Minute)
			f.obstructed(ids[1], "a job whose queue rests no more")
			equal(f, f.stats("default").Rests.IsZero(), true, "the queue rests no more")
			f.keysAre("at last", pawl.KeyStats{Key: "a", Ready: 2})
		}),
	}
}
