package queuetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	jobgroup "github.com/gopawl/pawl/group"
)

// refuses requires that the queue has no room for jobs, and stores none of them.
func (f *fixture) refuses(when string, jobs ...*pawl.Envelope) {
	f.Helper()
	unchanged := f.unchanged()
	f.is(f.try(jobs...), pawl.ErrQueueFull, "an enqueue "+when)
	unchanged("the refusal " + when)
}

// plain is a job without a key.
func plain() *pawl.Envelope { return &pawl.Envelope{Kind: "k"} }

// keyed is a job with a key.
func keyed(key string) *pawl.Envelope { return &pawl.Envelope{Kind: "k", Key: key} }

// returning are the ways in which a job comes to wait that is in the queue already, or that the queue itself
// stores. Prepare may leave no job waiting, and returns the call.
var returning = []struct {
	name    string
	needs   needs
	able    pawl.Ability
	prepare func(f *fixture) func()
}{
	{"a nack", 0, 0, func(f *fixture) func() { return f.ending(func(l *pawl.Lease) { f.nack(l, time.Hour) }) }},
	{"a nack without a delay", 0, 0, func(f *fixture) func() { return f.ending(func(l *pawl.Lease) { f.nack(l, 0) }) }},
	{"a snooze", 0, 0, func(f *fixture) func() { return f.ending(func(l *pawl.Lease) { f.snooze(l, time.Hour) }) }},
	{"a release", 0, 0, func(f *fixture) func() { return f.ending(f.release) }},
	{"an expiry", 0, 0, func(f *fixture) func() { return f.ending(f.expire) }},
	{"a retry", 0, 0, func(f *fixture) func() {
		id := f.held(pawl.Dead, key("a"))
		return func() { f.retry(id, false) }
	}},
	{"a transfer", 0, 0, func(f *fixture) func() {
		q, id := f.transferer(), f.held(pawl.Dead, key("a"))
		return func() {
			f.ok(q.Transfer(f.Context(), &pawl.Envelope{ID: id, Kind: "k", Key: "a"}, nil), "transfer")
		}
	}},
	{"a restore", 0, 0, func(f *fixture) func() {
		q := f.restorer()
		return func() {
			f.ok(q.Restore(f.Context(), []*pawl.Envelope{{Kind: "k", Key: "a", State: pawl.Ready}}, nil), "restore")
		}
	}},
	{"a mutation", mutating, 0, func(f *fixture) func() {
		return func() {
			f.mutate(mutation{check: func(ops driver.Ops) error { return enqueueIn(ops, keyed("a")) }})
		}
	}},
	{"the callback of a group", mutating, pawl.Groups, func(f *fixture) func() {
		f.makeGroup(jobgroup.Group{Name: "g", Done: keyed("a")})
		id := f.add(of("member"), key("a"), inGroup("g")).ID
		f.closeGroup("g")
		l := first(f.fetchKinds(1, "member"))
		equal(f, l.ID, id, "member")
		return func() { f.ack(l) }
	}},
}

// ending leases a job, and returns the call that ends its lease.
func (f *fixture) ending(end func(l *pawl.Lease)) func() {
	f.add(key("a"))
	l := f.lease()
	return func() { end(l) }
}

// bounds are the bounds of the cases that hold for both, of two waiting jobs.
var bounds = []struct {
	name string
	l    pawl.Limits
}{{"a queue", pawl.Limits{MaxWaiting: 2}}, {"a key", pawl.Limits{MaxWaitingPerKey: 2}}}

func backlogTests() (tests []test) {
	for _, b := range bounds {
		for _, way := range returning {
			tests = append(tests, limitTest(fmt.Sprintf("of %s lets %s pass", b.name, way.name),
				"What is in the queue already, and what the queue itself stores, is never refused. It counts, so an enqueue is.", b.l, func(f *fixture) {
					call := way.prepare(f)
					f.enqueue(keyed("a"), keyed("a"))
					call()
					equal(f, len(f.list(pawl.Filter{State: pawl.Ready}))+len(f.list(pawl.Filter{State: pawl.Delayed})), 3, "waiting jobs")
					f.refuses("beyond the bound", keyed("a"))
					f.cancel(f.list(pawl.Filter{State: pawl.Ready})[0].ID)
					f.refuses("at the bound", keyed("a"))
					f.cancel(f.list(pawl.Filter{State: pawl.Ready})[0].ID)
					f.enqueue(keyed("a"))
				}).needing(way.needs).alsoRequiring(way.able))
		}
		tests = append(tests, boundTests(b.name, b.l)...)
	}
	return append(tests, moreBacklogTests()...)
}

// boundTests are cases that hold for the bound of a queue and that of a key.
func boundTests(name string, l pawl.Limits) []test {
	return []test{
		limitTest("of "+name, "An enqueue that would leave more jobs waiting than the bound is refused, the whole call. Delayed jobs wait too.", l, func(f *fixture) {
			f.refuses("of more than the bound", newBatch(3, key("a"))...)
			f.add(key("a"), after(time.Hour))
			f.refuses("of which one job is too many", keyed("a"), keyed("a"))
			f.add(key("a"))
			f.refuses("into a full queue", keyed("a"))
			f.refuses("into a full queue with a delay", &pawl.Envelope{Kind: "k", Key: "a", Delay: time.Hour})
			f.pass(time.Hour)
			f.refuses("after a delay has ended", keyed("a"))
		}),
		limitTest("of "+name+" and other states", "Leased, dead, and completed jobs do not count.", l, func(f *fixture) {
			f.add(key("a"))
			f.add(key("a"))
			leases := f.leases(2)
			f.add(key("a"))
			f.add(key("a"))
			f.refuses("beside two leases", keyed("a"))
			f.ack(leases[0])
			f.abandon(leases[1])
			f.refuses("beside a dead job", keyed("a"))
			f.cancel(f.list(pawl.Filter{State: pawl.Ready})[0].ID)
			f.add(key("a"))
			f.refuses("after one more has died", keyed("a"))
		}),
		limitTest("of "+name+" and deadlines", "A job counts no more once its deadline has passed, and one that is past it when it comes never does.", l, func(f *fixture) {
			f.add(key("a"), within(time.Minute))
			f.add(key("a"))
			f.refuses("before the deadline", keyed("a"))
			late := keyed("a")
			late.Deadline = time.Now().Add(-time.Second)
			f.enqueue(late)
			f.pass(time.Minute)
			f.add(key("a"))
			f.refuses("after the deadline, and one more job", keyed("a"))
		}).alsoRequiring(pawl.Deadlines),
		limitTest("of "+name+" and unique keys", "An enqueue that finds the holder of its unique key, or replaces one that waits, needs no room. One that replaces a dead job does.", l, func(f *fixture) {
			dead := f.add(key("a"), unique("u", pawl.Ready, pawl.Dead)).ID
			f.cancel(dead)
			f.add(key("a"), unique("v"))
			f.add(key("a"))
			replace := func(u string) *pawl.Envelope {
				e := keyed("a")
				e.UniqueKey, e.OnConflict, e.UniqueIn = u, pawl.Replace, []pawl.State{pawl.Ready, pawl.Dead}
				return e
			}
			f.refuses("that replaces a dead job", replace("u"))
			f.enqueue(replace("v"))
			f.enqueue(&pawl.Envelope{Kind: "k", Key: "a", UniqueKey: "v"})
			f.cancel(f.list(pawl.Filter{State: pawl.Ready})[0].ID)
			f.enqueue(replace("u"), replace("u"))
			f.refuses("after the dead job was replaced", keyed("a"))
		}).alsoRequiring(pawl.UniqueKeys),
		limitTest("of "+name+" and other jobs", "A job that waits for others, or for an idempotency key, counts.", l, func(f *fixture) {
			f.add(on("other"), effect("e"))
			l := f.lease("other")
			f.enqueue(&pawl.Envelope{Kind: "other", Key: "a", IdempotencyKey: "e"}, &pawl.Envelope{Kind: "k", Key: "a", After: []pawl.ID{l.ID}})
			equal(f, len(f.fetch(9)), 0, "jobs that may run")
			f.refuses("beside two jobs that are blocked", keyed("a"))
			f.ack(l)
			f.leases(1)
			f.add(key("a"))
		}).alsoRequiring(pawl.IdempotencyKeys | pawl.Prerequisites),
		limitTest("of "+name+" survives a restart", "Bounds hold after a restart that declares none, and for the jobs that were there.", l, func(f *fixture) {
			f.add(key("a"))
			f.add(key("a"), after(time.Hour))
			f.settings.Limits = nil
			f.restart()
			f.refuses("after the restart", keyed("a"))
		}).needing(persists),
		limitTest("of "+name+" that changes", "A bound that is declared anew counts the jobs that are there, wherever they wait: set, raised, lowered, and removed.", pawl.Limits{}, func(f *fixture) {
			f.add(key("a"))
			leased := f.lease()
			f.enqueue(keyed("a"), keyed("a"), &pawl.Envelope{Kind: "k", Key: "a", Delay: time.Hour}, &pawl.Envelope{Kind: "k", Key: "a", After: []pawl.ID{leased.ID}})
			f.release(leased)
			declare := func(l pawl.Limits) {
				f.settings.Limits = limited(l).Limits
				f.restart()
			}
			declare(l)
			f.refuses("beyond a new bound", keyed("a"))
			declare(pawl.Limits{MaxWaiting: 3 * l.MaxWaiting, MaxWaitingPerKey: 3 * l.MaxWaitingPerKey, RunningPerKey: 1})
			f.enqueue(keyed("a"))
			f.refuses("at a raised bound", keyed("a"))
			declare(pawl.Limits{RunningPerKey: 1})
			f.enqueue(keyed("a"))
		}).needing(alone).alsoRequiring(pawl.Prerequisites),
	}
}

func moreBacklogTests() []test {
	return []test{
		limitTest("of one queue alone", "The bound of a queue does not bound another. A call for both is refused as a whole.", pawl.Limits{MaxWaiting: 1}, func(f *fixture) {
			f.enqueue(plain(), &pawl.Envelope{Kind: "k", Queue: "x"}, &pawl.Envelope{Kind: "k", Queue: "x"})
			f.refuses("of a job for each queue", &pawl.Envelope{Kind: "k", Queue: "x"}, plain())
			f.enqueue(&pawl.Envelope{Kind: "k", Queue: "x"})
		}),
		limitTest("of each key", "The bound of a key does not bound another, nor jobs without a key.", pawl.Limits{MaxWaitingPerKey: 1}, func(f *fixture) {
			f.enqueue(keyed("a"), keyed("b"), plain(), plain())
			f.refuses("of a job for a full key", plain(), keyed("c"), keyed("b"))
			f.enqueue(keyed("c"))
		}),
		limitTest("and both", "A queue may have both bounds. The error names the queue, the key, and the bound that is reached.",
			pawl.Limits{MaxWaiting: 3, MaxWaitingPerKey: 2}, func(f *fixture) {
				f.enqueue(keyed("a"), keyed("a"))
				names := func(err error, words ...string) {
					for _, word := range words {
						if !strings.Contains(err.Error(), word) {
							f.Fatalf("the error %q does not say %s", err, word)
						}
					}
				}
				names(f.try(keyed("a")), `"default"`, `"a"`, "MaxWaitingPerKey is 2")
				f.enqueue(keyed("b"))
				names(f.try(keyed("c")), `"default"`, "MaxWaiting is 3")
			}),
		limitTest("and a replacement of another key", "A job that replaces one of another key counts for its own key, and no more for the other.",
			pawl.Limits{MaxWaitingPerKey: 1}, func(f *fixture) {
				f.add(key("a"), unique("u"))
				f.add(key("b"))
				move := func(to string) *pawl.Envelope {
					return &pawl.Envelope{Kind: "k", Key: to, UniqueKey: "u", OnConflict: pawl.Replace}
				}
				f.refuses("that moves a job to a full key", move("b"))
				f.enqueue(move("c"))
				f.refuses("into the new key", keyed("c"))
				f.enqueue(keyed("a"))
			}).alsoRequiring(pawl.UniqueKeys),
		limitTest("and many callers", "Of many callers at a time, as many succeed as there is room for.", pawl.Limits{MaxWaiting: 7, MaxWaitingPerKey: 3}, func(f *fixture) {
			errs := make(chan error)
			for i := range 20 {
				go func() {
					_, err := f.q.Enqueue(f.Context(), keyed(string(rune('a'+i%2))), plain())
					errs <- err
				}()
			}
			refused := 0
			for range 20 {
				if err := <-errs; err != nil {
					f.is(err, pawl.ErrQueueFull, "an enqueue")
					refused++
				}
			}
			equal(f, refused, 17, "callers that are refused")
			equal(f, len(f.list(pawl.Filter{})), 6, "jobs")
		}),
		limitTest("and order", "The jobs of a key that run in order count once while they wait for their turn, also if another job was due earlier.",
			pawl.Limits{MaxWaitingPerKey: 3, InOrder: pawl.OrderContinue}, func(f *fixture) {
				f.add(key("a"), after(time.Minute))
				f.pass(time.Minute)
				f.enqueue(keyed("a"), keyed("a"))
				f.refuses("into a full key", keyed("a"))
				l := f.lease()
				f.add(key("a"))
				f.nack(l, time.Second)
				f.refuses("while a retry waits", keyed("a"))
				f.pass(time.Second)
				f.ack(f.lease())
				f.ack(f.lease())
				f.add(key("a"))
				f.refuses("after two jobs have run", keyed("a"))
				f.ok(f.restorer().Restore(f.Context(), []*pawl.Envelope{{Kind: "k", Key: "a", State: pawl.Ready, NotBefore: time.Now().Add(-time.Hour)}}, nil), "restore")
				f.ack(f.lease())
				f.ack(f.lease())
				f.add(key("a"))
				f.refuses("after the restored job and one more have run", keyed("a"))
			}).alsoRequiring(pawl.OrderedKeys),
	}
}
