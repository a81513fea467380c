package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

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
			f.ok(f.try(other, e), "enqueue")
			return e.ID
		}
	}},
	{"a replacement", func(f *fixture) func() pawl.ID {
		f.add(on("b"), unique("key"), after(time.Hour))
		return func() pawl.ID { return f.add(on("b"), unique("key"), answer(pawl.Replace)).ID }
	}},
	{"the end of a delay", holding(pawl.Delayed, func(f *fixture, _ pawl.ID) { f.pass(time.Hour) })},
	{"run now of a delayed job", holding(pawl.Delayed, func(f *fixture, id pawl.ID) { f.runNow(id) })},
	{"retry", holding(pawl.Dead, func(f *fixture, id pawl.ID) {
		f.ok(f.retrier().Retry(f.Context(), id, false), "retry")
	})},
	{"nack", settling(func(f *fixture, l *pawl.Lease) { f.nack(l, 0) })},
	{"nack with a delay", settling(func(f *fixture, l *pawl.Lease) { f.nack(l, time.Minute); f.pass(time.Minute) })},
	{"release", settling(func(f *fixture, l *pawl.Lease) { f.release(l) })},
	{"snooze", settling(func(f *fixture, l *pawl.Lease) { f.snooze(l, time.Minute); f.pass(time.Minute) })},
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
						_, second := f.fetching(f.Context(), pawl.Request{Queues: queues, Max: 1})
						f.add(on("elsewhere"))
						f.waits(call, "while no job is there for it")
						id := act()
						f.ends(call, nil, "fetch")
						equal(f, (*leases)[0].ID, id, "job")
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
