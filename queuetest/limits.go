package queuetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// key changes a job for add into one with a key.
func key(name string) func(*pawl.Envelope) { return func(e *pawl.Envelope) { e.Key = name } }

// limited are settings with limits for the default queue.
func limited(l pawl.Limits) Settings {
	return Settings{Limits: map[string]pawl.Limits{pawl.DefaultQueue: l}}
}

// limitTest is a case on a queue with limits.
func limitTest(name, rule string, l pawl.Limits, run func(f *fixture)) test {
	return newTest(name, rule, run).with(limited(l))
}

// keys are the keys of leases, in order.
func keys(leases []*pawl.Lease) (all string) {
	for _, l := range leases {
		all += l.Key
	}
	return all
}

// addKeys enqueues a job of each key, in this order.
func (f *fixture) addKeys(keys string) (ids []pawl.ID) {
	f.Helper()
	for _, k := range keys {
		ids = append(ids, f.add(key(string(k))).ID)
	}
	return ids
}

// ends are the ways in which a lease of a live job ends.
var ends = []struct {
	name string
	end  func(f *fixture, l *pawl.Lease)
}{
	{"an ack", func(f *fixture, l *pawl.Lease) { f.ack(l) }},
	{"a nack", func(f *fixture, l *pawl.Lease) {
		f.ok(f.q.Settle(f.Context(), l.Nack(time.Hour, errBoom)), "nack")
	}},
	{"an abandon", func(f *fixture, l *pawl.Lease) {
		f.ok(f.q.Settle(f.Context(), l.Abandon(pawl.ReasonPermanent, errBoom)), "abandon")
	}},
	{"a snooze", func(f *fixture, l *pawl.Lease) {
		f.ok(f.q.Settle(f.Context(), l.Snooze(time.Hour)), "snooze")
	}},
	{"an expiry", func(f *fixture, l *pawl.Lease) { f.expire(l) }},
}

func limitTests() []test {
	two, one, oneOfKey := pawl.Limits{Running: 2}, pawl.Limits{Running: 1}, pawl.Limits{RunningPerKey: 1}
	tests := []test{
		limitTest("of a queue", "No more jobs of a queue are leased at a time than its limit, whatever their kinds and keys.", two, func(f *fixture) {
			f.addKinds("a", "b", "c", "d")
			first := f.fetch(9)
			equal(f, kinds(first), "ab", "jobs of a fetch of nine")
			equal(f, len(f.fetch(9)), 0, "jobs of another fetch")
			f.ack(first[1])
			equal(f, kinds(f.fetch(9)), "c", "jobs after one of two has ended")
		}),
		limitTest("of one queue alone", "The limit of a queue does not limit another, also in one fetch.", one, func(f *fixture) {
			f.addKinds("a", "b")
			f.add(on("x"))
			f.add(on("x"))
			equal(f, len(f.fetch(9, "default", "x")), 3, "jobs of a fetch from both")
		}),
		limitTest("of a key", "No more jobs of a key are leased at a time than its limit. Others are: those of other keys, and those without a key.",
			pawl.Limits{RunningPerKey: 2}, func(f *fixture) {
				f.addKeys("aaabab")
				f.add()
				f.add()
				first := f.fetch(9)
				equal(f, keys(first), "aabb", "keys of a fetch of nine")
				equal(f, len(first), 6, "jobs of it")
				equal(f, len(f.fetch(9)), 0, "jobs of another fetch")
				f.ack(first[2])
				f.ack(first[0])
				equal(f, keys(f.fetch(9)), "a", "keys after one of each has ended")
			}),
		limitTest("of a key in one queue", "A key counts for its queue. The same key in another queue is another key.", oneOfKey, func(f *fixture) {
			f.addKeys("aa")
			f.add(on("x"), key("a"))
			equal(f, len(f.fetch(9, "default", "x")), 2, "jobs of a fetch from both")
		}),
		limitTest("of a key over kinds", "A key counts over all kinds of a queue. Jobs of a kind that no fetch asks for keep nobody from running.",
			oneOfKey, func(f *fixture) {
				f.add(of("a"), key("x"))
				f.add(of("b"), key("x"))
				b := pawl.Request{Kinds: []string{"b"}, Max: 9}
				l := f.request(b)
				equal(f, kinds(l), "b", "jobs of kind b")
				equal(f, len(f.fetch(9)), 0, "jobs while it runs")
				f.ack(l[0])
				equal(f, len(f.request(b)), 0, "jobs of kind b afterward")
				equal(f, kinds(f.fetch(9)), "a", "jobs of every kind")
			}),
		limitTest("and an effect in one fetch", "If another job of the fetch has the effect of a job, the next job of its key gets the room.", oneOfKey, func(f *fixture) {
			f.add(of("a"), effect("e"))
			f.add(of("a"), effect("e"), key("x"))
			f.add(of("c"), key("x"))
			equal(f, kinds(f.fetch(9)), "ac", "jobs of a fetch of nine")
		}),
		limitTest("and order", "A blocked job keeps its place: jobs of a key run by priority, then in the order of becoming ready.", oneOfKey, func(f *fixture) {
			f.add(of("a"), key("x"))
			l := f.lease()
			f.add(of("c"), key("x"))
			f.add(of("e"), key("x"), priority(-1))
			equal(f, len(f.fetch(9)), 0, "jobs of a key at its limit")
			f.add(of("d"), key("x"))
			f.add(of("b"), key("x"), priority(1))
			order := ""
			for ; l != nil; l = first(f.fetch(9)) {
				f.ack(l)
				order += l.Kind
			}
			equal(f, order, "abcde", "order")
		}),
		limitTest("and a retry", "A job that waits for its retry is not running. When it is due it waits for its key as any other.", oneOfKey, func(f *fixture) {
			ids := f.addKeys("aa")
			l := f.lease()
			f.ok(f.q.Settle(f.Context(), l.Nack(10*time.Second, errBoom)), "nack")
			l = f.lease()
			equal(f, l.ID, ids[1], "job that runs meanwhile")
			f.pass(10 * time.Second)
			equal(f, f.must(ids[0]).State, pawl.Ready, "state of the retry that is due")
			equal(f, len(f.fetch(9)), 0, "jobs")
			f.ack(l)
			equal(f, f.lease().ID, ids[0], "job that runs then")
		}),
		limitTest("and drains", "A fetch that drains waits for jobs that a limit keeps from running.", oneOfKey, func(f *fixture) {
			ids := f.addKeys("aa")
			l := f.lease()
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 1, Wait: pawl.WaitDrained})
			f.waits(call, "a drain")
			f.ack(l)
			f.ack(f.gets(call, leases, ids[1], "the drain"))
			_, err := f.q.Fetch(f.patient(), pawl.Request{Max: 1, Wait: pawl.WaitDrained})
			f.is(err, pawl.ErrEmpty, "a drain of nothing")
		}),
		limitTest("and many", "A fetch finds a job behind any number of jobs whose key is at its limit. They run later.", oneOfKey, func(f *fixture) {
			f.enqueue(newBatch(1500, key("a"))...)
			id := f.add(key("b")).ID
			leases := f.fetch(9)
			equal(f, keys(leases), "ab", "keys")
			equal(f, leases[1].ID, id, "job")
			for range 5 {
				f.ack(leases[0])
				leases = f.leases(1)
			}
			equal(f, len(f.list(pawl.Filter{State: pawl.Ready})), 1494, "jobs that still wait")
		}),
		limitTest("and many keys", "A fetch finds a job behind any number of keys that are at their limit.", oneOfKey, func(f *fixture) {
			a, b := newBatch(700, of("a")), newBatch(700, of("b"))
			for i := range a {
				a[i].Key, b[i].Key = fmt.Sprint(i), fmt.Sprint(i)
			}
			f.enqueue(a...)
			f.enqueue(b...)
			equal(f, len(f.request(pawl.Request{Kinds: []string{"a"}, Max: 700})), 700, "jobs of the first kind")
			id := f.add(of("b"), key("other")).ID
			equal(f, f.lease().ID, id, "job of a key without leases")
		}),
		limitTest("and cancellation", "A blocked job can be cancelled. If the next job of a key is cancelled, another takes its place.", oneOfKey, func(f *fixture) {
			ids := f.addKeys("aaaa")
			l := f.lease()
			equal(f, len(f.fetch(9)), 0, "jobs")
			f.cancel(ids[2])
			f.diedOf(ids[2], pawl.ReasonCancelled, "a blocked job")
			f.ack(l)
			f.cancel(ids[1])
			equal(f, f.lease().ID, ids[3], "job that runs then")
		}),
	}
	return slices.Concat(tests, moreLimitTests(), rateTests())
}

// first is the first of some leases, or nil.
func first(leases []*pawl.Lease) *pawl.Lease {
	if len(leases) == 0 {
		return nil
	}
	return leases[0]
}

func moreLimitTests() (tests []test) {
	for _, e := range ends {
		for _, by := range []struct {
			name string
			l    pawl.Limits
		}{{"a queue", pawl.Limits{Running: 1}}, {"a key", pawl.Limits{RunningPerKey: 1}}} {
			tests = append(tests, limitTest(fmt.Sprintf("of %s end with %s", by.name, e.name),
				"However a lease ends, the next job can run at once: a fetch that waits gets it.", by.l, func(f *fixture) {
					f.add(key("a"))
					l := f.lease()
					id := f.add(key("a"), priority(1)).ID
					leases, call := f.fetching(f.patient(), pawl.Request{Max: 1})
					f.waits(call, "a fetch while the limit is reached")
					e.end(f, l)
					f.gets(call, leases, id, "the fetch that waited")
				}))
		}
	}
	return append(tests,
		limitTest("and deadlines", "A blocked job becomes dead when its deadline passes, and one whose turn it is makes way.",
			pawl.Limits{RunningPerKey: 1}, func(f *fixture) {
				ids := []pawl.ID{f.add(key("a"), within(time.Hour)).ID, f.add(key("a"), within(time.Minute)).ID, f.add(key("a")).ID}
				f.ok(f.q.Settle(f.Context(), f.lease().Release()), "release")
				f.pass(time.Minute)
				f.diedOf(ids[1], pawl.ReasonDeadline, "a blocked job")
				f.pass(time.Hour)
				f.diedOf(ids[0], pawl.ReasonDeadline, "the job whose turn it is")
				equal(f, f.lease().ID, ids[2], "job that runs then")
			}).alsoRequiring(pawl.Deadlines),
		limitTest("and idempotency keys", "A job with both keys runs when both allow it. One that is blocked keeps no other job with its idempotency key from running.",
			pawl.Limits{RunningPerKey: 1}, func(f *fixture) {
				f.add(of("l"), key("a"))
				l := f.lease()
				both := f.add(key("a"), effect("x")).ID
				free := f.add(key("b"), effect("x")).ID
				again := f.lease()
				equal(f, again.ID, free, "job that runs while the first is blocked")
				f.ack(l)
				equal(f, len(f.fetch(9)), 0, "jobs while the idempotency key is leased")
				f.ok(f.q.Settle(f.Context(), again.Abandon(pawl.ReasonPermanent, errBoom)), "abandon")
				equal(f, f.lease().ID, both, "job that runs then")
			}).alsoRequiring(pawl.IdempotencyKeys),
		limitTest("and ahead", "A job that is leased ahead of a free slot counts as running.", pawl.Limits{Running: 3}, func(f *fixture) {
			f.addKinds("a", "b", "c", "d")
			equal(f, len(f.request(pawl.Request{Max: 4, Ahead: 3})), 3, "jobs of a fetch with one free slot")
		}),
		limitTest("count blocked jobs", "The counts say how many ready jobs are blocked.", pawl.Limits{RunningPerKey: 1}, func(f *fixture) {
			f.addKeys("aaabb")
			f.add()
			leases := f.leases(3)
			equal(f, len(f.fetch(9)), 0, "jobs while both keys are at their limit")
			equal(f, f.blocked(pawl.DefaultQueue), 3, "blocked jobs")
			f.ack(leases[0])
			equal(f, f.blocked(pawl.DefaultQueue), 2, "blocked jobs when one more may run")
		}).needing(counting),
		limitTest("survive a restart", "Limits hold after a restart that declares none. Leases that the restart took back count no more.",
			pawl.Limits{Running: 3, RunningPerKey: 1}, func(f *fixture) {
				ids := f.addKeys("aab")
				equal(f, len(f.fetch(9)), 2, "jobs before")
				f.settings.Limits = nil
				f.restart()
				leases := f.fetch(9)
				equal(f, keys(leases), "ab", "keys after the restart")
				equal(f, leases[0].ID, ids[0], "job")
			}).needing(alone),
		limitTest("that change", "Limits that are declared anew hold for the jobs that are there: raised, lowered, removed, and set.",
			pawl.Limits{RunningPerKey: 2}, func(f *fixture) {
				f.enqueue(newBatch(9, key("a"))...)
				for _, step := range []struct{ limit, want int }{{2, 2}, {4, 4}, {1, 1}, {0, 9}, {3, 3}} {
					f.settings.Limits = limited(pawl.Limits{RunningPerKey: step.limit}).Limits
					f.restart()
					leases := f.fetch(20)
					equal(f, len(leases), step.want, fmt.Sprintf("jobs with a limit of %d", step.limit))
					for _, l := range leases {
						f.ok(f.q.Settle(f.Context(), l.Release()), "release")
					}
				}
			}).needing(alone),
		newTest("without limits", "A key has no effect in a queue without limits.", func(f *fixture) {
			f.addKeys("aaaa")
			equal(f, len(f.fetch(9)), 4, "jobs")
		}),
		newTest("and bad keys", "A key has at most 255 bytes and no NUL byte.", func(f *fixture) {
			for _, bad := range []string{"a\x00b", string(make([]byte, 256))} {
				f.is(f.try(&pawl.Envelope{Kind: "k", Key: bad}), pawl.ErrInvalid, fmt.Sprintf("a key of %d bytes", len(bad)))
			}
			f.add(key(strings.Repeat("k", 255)))
		}),
	)
}
