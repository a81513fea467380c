package queuetest

import (
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// ordered adds the jobs a, b, c, and so on, one second apart, and fetches them when all
// are due.
func ordered(name, rule, order string, changes ...func(*pawl.Envelope)) test {
	return newTest(name, rule, func(f *fixture) {
		for i, change := range changes {
			f.add(of(string(rune('a'+i))), change)
			f.pass(time.Second)
		}
		f.pass(time.Minute)
		f.comeAs(f.fetch(99), order, "jobs")
	})
}

func orderTests() []test {
	now := func(*pawl.Envelope) {}
	at := func(d time.Duration) func(*pawl.Envelope) {
		return func(e *pawl.Envelope) { e.NotBefore = time.Now().Add(d) }
	}
	return []test{
		ordered("as they were made", "Jobs that are equal in everything else come in the order in which they became ready.", "abc", now, now, now),
		ordered("priority", "Jobs with a higher priority come first, from 127 down to -128.", "egdcbfa",
			priority(-128), priority(-1), priority(0), priority(1), priority(127), priority(-127), priority(126)),
		ordered("priority before time", "Priority counts before the time since when a job is ready.", "cab", now, now, priority(1)),
		ordered("the due time", "A delayed job is ready since it was due.", "bac", after(1500*time.Millisecond), now, now),
		ordered("a given time", "NotBefore becomes the time since when a job is ready.", "bcad",
			at(2500*time.Millisecond), now, at(100*time.Millisecond), now),
		ordered("a time of the past", "A NotBefore in the past does not put a job ahead of jobs that are already ready.", "abc", now, at(-time.Hour), now),
		newTest("the same instant", "Jobs that are ready since the same time come by their enqueue sequence.", func(f *fixture) {
			var want []pawl.ID
			due := time.Now().Add(time.Second)
			for i := range 100 {
				change := func(e *pawl.Envelope) { e.NotBefore = due }
				if i%3 == 0 {
					change = after(time.Second) // the same delay in another form
				}
				want = append(want, f.add(change).ID)
			}
			f.due(time.Second)
			var got []pawl.ID
			for range 20 {
				for _, l := range f.leases(5) {
					got = append(got, l.ID)
				}
			}
			f.sameOrder(got, want, "order")
		}),
		newTest("within a batch", "The jobs of a batch come in the order of the batch.", func(f *fixture) {
			batch := newBatch(50)
			f.ok(f.try(batch...), "enqueue")
			for i, l := range f.leases(50) {
				equal(f, l.ID, batch[i].ID, "job")
			}
		}).needing(batches),
		newTest("one kind", "New jobs of one kind come in the order in which they were enqueued.", func(f *fixture) {
			var want []pawl.ID
			for range 20 {
				want = append(want, f.add().ID)
				f.pass(time.Second)
			}
			var got []pawl.ID
			for range 4 {
				for _, l := range f.leases(5) {
					got = append(got, l.ID)
				}
			}
			f.sameJobs(got, want, "order")
		}),
		newTest("a retried job keeps its priority", "A failure does not change the priority of a job.", func(f *fixture) {
			f.add(of("b"))
			f.add(of("a"), priority(1))
			f.nack(f.leases(1)[0], 0)
			equal(f, kinds(f.fetch(9)), "ab", "order")
		}),
	}
}

// placed fetches job a of a, b, and c, does something to it, adds d one second later
// and e two seconds after that, and checks the order.
func placed(name, rule, order string, do func(*fixture, *pawl.Lease)) test {
	return newTest(name, rule, func(f *fixture) {
		for _, kind := range []string{"a", "b", "c"} {
			f.add(of(kind))
			f.pass(time.Second)
		}
		var l *pawl.Lease
		if f.config.Reduced.Unordered {
			l = f.fetchKinds(1, "a")[0]
		} else {
			l = f.leases(1)[0]
			equal(f, l.Kind, "a", "first job")
		}
		do(f, l)
		f.pass(time.Second)
		f.add(of("d"))
		f.due(2 * time.Second)
		f.add(of("e"))
		f.comeAs(f.fetch(9), order, "jobs")
	})
}

func placeTests() []test {
	const keeps, since = "Release and reap keep the time since when a job is ready.",
		"A snoozed job, or one that waited for its retry, is ready since the end of its delay."
	return []test{
		placed("release", keeps, "abcde", (*fixture).release),
		placed("reap", keeps, "abcde", (*fixture).expire),
		placed("nack", "A failed job goes behind the ready jobs.", "bcade",
			func(f *fixture, l *pawl.Lease) { f.nack(l, 0) }),
		placed("nack with a delay", since, "bcdae", func(f *fixture, l *pawl.Lease) { f.nack(l, 2*time.Second) }),
		placed("snooze", since, "bcdae", func(f *fixture, l *pawl.Lease) { f.snooze(l, 2*time.Second) }),
		placed("retry", "A dead job that is retried goes behind the ready jobs.", "bcade",
			func(f *fixture, l *pawl.Lease) {
				f.abandon(l)
				f.retry(l.ID, false)
			}),
	}
}

// fill puts n jobs on each queue, whose kind is the name of the queue.
func (f *fixture) fill(n int, queues ...string) {
	f.Helper()
	for range n {
		for _, name := range queues {
			f.add(on(name))
		}
	}
}

// fetched returns the kinds of the jobs of this many fetches of one job.
func (f *fixture) fetched(times int, queues ...string) (text string) {
	f.Helper()
	for range times {
		text += kinds(f.fetch(1, queues...))
	}
	return text
}

var turnTests = []test{
	newTest("within one fetch", "Several queues take turns.", func(f *fixture) {
		f.fill(3, "a", "b", "c")
		f.inTurns(kinds(f.fetch(9, "a", "b", "c")), 3)
	}),
	newTest("over fetches of one", "Several queues take turns, also from fetch to fetch.", func(f *fixture) {
		f.fill(3, "a", "b", "c")
		f.inTurns(f.fetched(9, "a", "b", "c"), 3)
	}),
	newTest("over fetches of two", "Several queues take turns, also if a fetch ends within a round.", func(f *fixture) {
		f.fill(4, "a", "b", "c")
		var text string
		for range 6 {
			text += kinds(f.fetch(2, "a", "b", "c"))
		}
		f.inTurns(text, 3)
	}),
	newTest("beside fetches from other queues", "Several queues take turns, also if other fetches name other queues in "+
		"between.", func(f *fixture) {
		f.fill(6, "a", "b", "c")
		var text string
		for range 6 {
			text += kinds(f.fetch(1, "a", "b"))
			f.leases(1, "c")
		}
		f.inTurns(text, 2)
	}),
	newTest("named in another order", "Several queues take turns, whatever the order in which a request names them.", func(f *fixture) {
		f.fill(6, "a", "b")
		var text string
		for range 3 {
			text += kinds(f.fetch(1, "a", "b")) + kinds(f.fetch(1, "a", "b"))
			f.fill(1, "a", "b")
			text += kinds(f.fetch(1, "b", "a")) + kinds(f.fetch(1, "b", "a"))
		}
		f.inTurns(text, 2)
	}),
	newTest("an empty queue", "The turn of an empty queue goes to the others, equally.", func(f *fixture) {
		f.fill(1, "b")
		f.ack(f.lease("b"))
		f.fill(6, "a", "c")
		text := f.fetched(8, "a", "b", "c")
		equal(f, strings.Count(text, "a"), 4, "jobs of one of the two in "+text)
	}),
	newTest("an empty queue anywhere in the request",
		"The other queues take turns, whichever queue is empty and whatever the order in which a request names them.", func(f *fixture) {
			for _, order := range []string{"abc", "acb", "bac", "bca", "cab", "cba"} {
				for _, empty := range order {
					f.fresh(f.settings)
					names := strings.Split(order, "")
					f.fill(1, string(empty))
					f.ack(f.lease(string(empty)))
					f.fill(3, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == string(empty) })...)
					f.inTurns(f.fetched(6, names...), 2)
				}
			}
		}),
	newTest("a queue that runs dry", "When a queue runs out of jobs, the others take the remaining places.", func(f *fixture) {
		f.fill(1, "a")
		f.fill(4, "b")
		text := kinds(f.leases(5, "a", "b", "never seen"))
		equal(f, strings.Count(text[:2], "a"), 1, "jobs of a in the first round of "+text)
	}),
	newTest("priority counts within a queue",
		"Order applies within a queue: no priority takes the turn of another queue.", func(f *fixture) {
			f.fill(3, "a")
			for range 3 {
				f.add(on("b"), priority(100))
			}
			f.inTurns(kinds(f.fetch(6, "a", "b")), 2)
		}),
	newTest("a queue that is named twice", "A queue that a request names twice is one queue, and no job is leased twice.", func(f *fixture) {
		f.fill(2, "a")
		leases := f.leases(2, "a", "a")
		equal(f, leases[0].ID == leases[1].ID, false, "one job was leased twice")
		equal(f, len(f.fetch(9, "a", "a")), 0, "jobs left")
	}),
	newTest("only the queues that are named",
		"A fetch takes jobs from the queues that its request names, and from the default queue if it names none.", func(f *fixture) {
			f.fill(1, "a", pawl.DefaultQueue, "b")
			equal(f, kinds(f.fetch(9)), pawl.DefaultQueue, "without a name")
			equal(f, kinds(f.fetch(9, "b")), "b", "from b")
			equal(f, len(f.fetch(9, "c")), 0, "jobs from a queue that never was")
			equal(f, kinds(f.fetch(9, "a")), "a", "from a")
		}),
	newTest("names never mix", "The name of a queue may have any bytes except NUL, and no name is mistaken for another.", func(f *fixture) {
		names := []string{
			"a", "aa", "a\x01", "a\xff", "\xff", "\xff\xff", "\x01", " ", "ü", "\xc3", "a/b", "%s",
			strings.Repeat("a", f.maxName()-1), strings.Repeat("a", f.maxName()), strings.Repeat("\xff", f.maxName()),
		}
		f.fill(2, names...)
		for _, name := range names {
			equal(f, kinds(f.fetch(99, name)), name+name, "jobs of a queue")
		}
	}),
}

// inTurns requires that each round of this many jobs has one job of each queue.
func (f *fixture) inTurns(text string, queues int) {
	f.Helper()
	for i := 0; i < len(text); i += queues {
		round := text[i:min(i+queues, len(text))]
		for _, name := range round {
			if strings.Count(round, string(name)) != 1 {
				f.Fatalf("the queues came as %s, so %s had two turns in one round", text, string(name))
			}
		}
	}
}
