package queuetest

import (
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

var fetchTests = []test{
	newTest("leases", "Fetch leases a job to one holder and counts no attempt. The lease says when it expires.", func(f *fixture) {
		id := f.add().ID
		f.pass(time.Second)
		l := f.lease()
		equal(f, len(f.fetch(9)), 0, "jobs for a second fetch")
		equal(f, l.Length, 30*time.Second, "length of a lease")
		if f.config.Reduced.Looks == 0 {
			f.sameTime(l.Expires, time.Now().Add(l.Length), "expiry")
		}
		f.pass(time.Second)
		e := f.must(id)
		equal(f, e.State, pawl.Leased, "state")
		equal(f, e.Attempts, 0, "attempts")
		f.sameTime(e.LeasedSince, time.Now().Add(-time.Second), "leased since")
	}),
	newTest("no more than asked", "Fetch returns at most Request.Max jobs.", func(f *fixture) {
		f.fill(5, pawl.DefaultQueue)
		equal(f, len(f.fetch(2)), 2, "jobs of a fetch of 2")
		equal(f, len(f.fetch(99)), 3, "the rest")
	}),
	newTest("a new token each time", "Each lease of a job has a new token.", func(f *fixture) {
		f.add()
		tokens := make(map[uint64]bool)
		for range 20 {
			l := f.lease()
			equal(f, tokens[l.Token], false, "a token came twice")
			tokens[l.Token] = true
			f.release(l)
		}
	}),
	newTest("the lease has the job alone", "Only inspection fills in State, LeasedSince, and History.", func(f *fixture) {
		f.add()
		f.nack(f.lease(), 0)
		l := f.lease()
		equal(f, l.State, "", "state")
		equal(f, l.LeasedSince.IsZero(), true, "no time since when it is leased")
		equal(f, len(l.History), 0, "history")
		equal(f, l.Failures, 1, "failures")
	}),
	newTest("fetches that wait are served in their order", "The fetch that has waited longest gets the next job.", func(f *fixture) {
		var calls []<-chan error
		var leases []*[]*pawl.Lease
		for range 3 {
			l, call := f.fetching(f.Context(), pawl.Request{Max: 1})
			calls, leases = append(calls, call), append(leases, l)
		}
		for i, call := range calls {
			id := f.add().ID
			f.ends(call, nil, "the fetch that came first")
			equal(f, (*leases[i])[0].ID, id, "job")
			for _, later := range calls[i+1:] {
				f.waits(later, "a fetch that came later")
			}
		}
	}).needing(ordering),
	newTest("a fetch that waits for other queues is passed over",
		"A waiting fetch gets jobs from its own queues and holds up no other fetch.", func(f *fixture) {
			_, other := f.fetching(f.Context(), pawl.Request{Queues: []string{"other"}, Max: 1})
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
			id := f.add().ID
			f.gets(call, leases, id, "fetch")
			f.waits(other, "the fetch from another queue")
			f.add(on("other"))
			f.ends(other, nil, "the fetch from another queue")
		}),
	newTest("a batch goes to a fetch that waits",
		"A waiting fetch gets as many jobs as it asked for if one call brings them.", func(f *fixture) {
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 3})
			f.ok(f.try(newBatch(5)...), "enqueue")
			f.ends(call, nil, "fetch")
			equal(f, len(*leases), 3, "jobs")
			equal(f, len(f.fetch(9)), 2, "jobs left")
		}).needing(batches),
}

var waits = map[pawl.Wait]string{
	pawl.WaitForJob: "WaitForJob", pawl.WaitNot: "WaitNot", pawl.WaitDrained: "WaitDrained", pawl.WaitFinished: "WaitFinished",
}

// givesUp checks which kinds of waiting end at once in a queue that holds only
// something which a fetch cannot get.
func givesUp(holds string, setup func(*fixture), empty ...pawl.Wait) test {
	return newTest("with "+holds,
		"WaitNot returns at once, WaitDrained when no job is ready or leased, WaitFinished when no job is ready, leased, "+
			"or delayed, and WaitForJob never.", func(f *fixture) {
			for wait, name := range waits {
				f.fresh(Settings{})
				setup(f)
				_, call := f.fetching(f.Context(), pawl.Request{
					Queues: []string{pawl.DefaultQueue, "never seen"}, Max: 1, Ahead: 1, Wait: wait,
				})
				if slices.Contains(empty, wait) {
					f.ends(call, pawl.ErrEmpty, name)
				} else {
					f.waits(call, name)
				}
			}
		})
}

// lastJob settles the only job while a fetch waits for the end of all work.
func lastJob(wait pawl.Wait, v verb, empty bool) test {
	return newTest(waits[wait]+" and "+v.name,
		"A fetch that waits for the end of the work returns when the last job is settled, or gets the job if it becomes "+
			"ready again.", func(f *fixture) {
			id := f.add().ID
			l := f.lease()
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 1, Wait: wait})
			f.waits(call, "while the last job runs")
			f.end(v, l)
			if empty {
				f.ends(call, pawl.ErrEmpty, "fetch")
				return
			}
			f.await(call)
			equal(f, (*leases)[0].ID, id, "job")
		})
}

func waitTests() []test {
	all := []pawl.Wait{pawl.WaitNot, pawl.WaitDrained, pawl.WaitFinished}
	tests := []test{
		givesUp("nothing", func(*fixture) {}, all...),
		givesUp("a leased job", func(f *fixture) { f.held(pawl.Leased) }, pawl.WaitNot),
		givesUp("a delayed job", func(f *fixture) { f.held(pawl.Delayed) }, pawl.WaitNot, pawl.WaitDrained),
		givesUp("a dead job", func(f *fixture) { f.held(pawl.Dead) }, all...),
		givesUp("a ready job of another queue", func(f *fixture) { f.add(on("other")) }, all...),
		givesUp("a delayed job of another queue", func(f *fixture) { f.add(on("other"), after(time.Hour)) }, all...),
		givesUp("a ready job that wants an idle slot", func(f *fixture) {
			f.add()
			f.expire(f.lease())
		}, pawl.WaitNot).needing(suspecting),
	}
	for _, v := range verbs {
		tests = append(tests,
			lastJob(pawl.WaitDrained, v, v.next != pawl.Ready),
			lastJob(pawl.WaitFinished, v, v.next != pawl.Ready && v.next != pawl.Delayed))
	}
	return append(append(tests, wakeTests()...),
		newTest("a job is there", "Whatever a fetch waits for, it returns at once when it finds a job.", func(f *fixture) {
			for wait, name := range waits {
				id := f.add().ID
				leases, call := f.fetching(f.Context(), pawl.Request{Max: 9, Ahead: 8, Wait: wait})
				f.ack(f.gets(call, leases, id, name))
			}
		}),
	)
}

// wake is a way in which a fetch can get a job of queue "b".
type wake struct {
	name string

	// prepare leaves no job to fetch. The returned function makes a job ready and names
	// it.
	prepare func(f *fixture) (act func() pawl.ID)
}

// settling prepares a lease that act ends.
func settling(act func(f *fixture, l *pawl.Lease)) func(*fixture) func() pawl.ID {
	return func(f *fixture) func() pawl.ID {
		f.add(on("b"))
		l := f.lease("b")
		return func() pawl.ID {
			act(f, l)
			return l.ID
		}
	}
}

// holding prepares a job in a state that act ends.
func holding(state pawl.State, act func(f *fixture, id pawl.ID)) func(*fixture) func() pawl.ID {
	return func(f *fixture) func() pawl.ID {
		id := f.held(state, on("b"))
		return func() pawl.ID {
			act(f, id)
			return id
		}
	}
}

var wakes = []wake{
	{"an enqueue", func(f *fixture) func() pawl.ID {
		return func() pawl.ID { return f.add(on("b")).ID }
	}},
	{"a batch", func(f *fixture) func() pawl.ID {
		return func() pawl.ID {
			other, e := &pawl.Envelope{Kind: "k", Queue: "other"}, &pawl.Envelope{Kind: "b", Queue: "b"}
			f.enqueue(other, e)
			return e.ID
		}
	}},
	{"a replacement", func(f *fixture) func() pawl.ID {
		f.add(on("b"), unique("key"), after(time.Hour))
		return func() pawl.ID { return f.add(on("b"), unique("key"), answer(pawl.Replace)).ID }
	}},
	{"the end of a delay", func(f *fixture) func() pawl.ID {
		id := f.add(on("b"), after(time.Minute)).ID
		return func() pawl.ID {
			f.due(time.Minute)
			return id
		}
	}},
	{"run now of a delayed job", holding(pawl.Delayed, func(f *fixture, id pawl.ID) { f.runNow(id) })},
	{"retry", holding(pawl.Dead, func(f *fixture, id pawl.ID) {
		f.ok(f.retrier().Retry(f.Context(), id, false), "retry")
	})},
	{"nack", settling(func(f *fixture, l *pawl.Lease) { f.nack(l, 0) })},
	{"nack with a delay", settling(func(f *fixture, l *pawl.Lease) { f.nack(l, time.Minute); f.due(time.Minute) })},
	{"release", settling(func(f *fixture, l *pawl.Lease) { f.release(l) })},
	{"snooze", settling(func(f *fixture, l *pawl.Lease) { f.snooze(l, time.Minute); f.due(time.Minute) })},
	{"an expiry", settling(func(f *fixture, l *pawl.Lease) { f.expire(l) })},
	{"the death of a job with its key", func(f *fixture) func() pawl.ID {
		f.add(on("b"), effect("key"))
		l := f.lease("b")
		id := f.add(on("b"), effect("key")).ID
		return func() pawl.ID {
			f.abandon(l)
			return id
		}
	}},
	{"resume", func(f *fixture) func() pawl.ID {
		f.pause("b")
		id := f.add(on("b")).ID
		return func() pawl.ID {
			f.resume("b")
			return id
		}
	}},
	{"resume of the queue and of another", func(f *fixture) func() pawl.ID {
		f.pause("a")
		f.pause("b")
		id := f.add(on("b")).ID
		return func() pawl.ID {
			f.resume("a")
			f.resume("b")
			return id
		}
	}},
}

// wakeTests have fetches wait for several queues. The job's queue is the first, the
// last, or one in between.
func wakeTests() (tests []test) {
	for _, w := range wakes {
		tests = append(tests,
			newTest("for several queues: "+w.name,
				"Whatever makes a job ready wakes one fetch that waits for its queue among others, and no fetch that does "+
					"not wait for it.", func(f *fixture) {
					for _, queues := range [][]string{{"a", "b"}, {"b", "a"}, {"never seen", "a", "b", "c"}} {
						f.fresh(Settings{})
						f.add(on("a"))
						f.ack(f.lease("a")) // a queue that is known, and empty
						act := w.prepare(f)
						_, other := f.fetching(f.Context(), pawl.Request{Queues: []string{"c", "d"}, Max: 1})
						leases, call := f.fetching(f.Context(), pawl.Request{Queues: queues, Max: 1})
						var second <-chan error
						begin := func() { _, second = f.fetching(f.Context(), pawl.Request{Queues: queues, Max: 1}) }
						if !f.config.Reduced.Unordered {
							begin() // it waits behind the first
						}
						f.add(on("elsewhere"))
						f.waits(call, "while no job is there for it")
						id := act()
						f.gets(call, leases, id, "fetch")
						if f.config.Reduced.Unordered {
							begin()
						}
						f.waits(second, "behind the first")
						f.add(on("b"))
						f.ends(second, nil, "the second fetch")
						f.waits(other, "for other queues")
					}
				}),
		)
	}
	return tests
}
