package queuetest

import (
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
		equal(f, kinds(f.fetch(99)), order, "order")
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
			f.pass(time.Second)
			var got []pawl.ID
			for range 20 {
				for _, l := range f.leases(5) {
					got = append(got, l.ID)
				}
			}
			f.sameJobs(got, want, "order")
		}),
		newTest("within a batch", "The jobs of a batch come in the order of the batch.", func(f *fixture) {
			batch := newBatch(50)
			f.ok(f.try(batch...), "enqueue")
			for i, l := range f.leases(50) {
				equal(f, l.ID, batch[i].ID, "job")
			}
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
		l := f.leases(1)[0]
		equal(f, l.Kind, "a", "first job")
		do(f, l)
		f.pass(time.Second)
		f.add(of("d"))
		f.pass(2 * time.Second)
		f.add(of("e"))
		equal(f, kinds(f.fetch(9)), order, "order")
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
