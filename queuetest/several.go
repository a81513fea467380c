package queuetest

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

// The cases of several clients of one queue, such as processes that share a server.

// hearsay is how long one client may take to learn what another one did, in virtual time. A
// queue without wake-ups between its clients looks that often.
const hearsay = time.Minute

// another opens one more client of the queue. Its methods act through that client.
func (f *fixture) another() *fixture {
	f.Helper()
	g := &fixture{T: f.T, config: f.config, open: f.config.Another, dir: f.dir, settings: f.settings}
	g.reopen()
	return g
}

// hears requires that a started call returns an error that matches want within hearsay.
func (f *fixture) hears(call <-chan error, want error, what string) {
	f.Helper()
	select {
	case err := <-call:
		f.is(err, want, what)
	case <-time.After(hearsay):
		f.Fatalf("%s: it still waits after %v", what, hearsay)
	}
}

// wakesAnother lets one client make a job ready while another one waits for it.
func wakesAnother(w wake) test {
	return newTest("woken by "+w.name,
		"A fetch of one client that waits gets a job that another client makes ready, within a minute.", func(f *fixture) {
			other := f.another()
			act := w.prepare(f)
			leases, call := other.fetching(f.patient(), pawl.Request{Queues: []string{"b"}, Max: 1})
			f.waits(call, "before "+w.name)
			id := act()
			f.hears(call, nil, "the fetch of the other client")
			equal(f, (*leases)[0].ID, id, "job")
			equal(f, len(f.fetch(1, "b")), 0, "jobs for the first client")
			other.ack((*leases)[0])
		})
}

// staleClient loses the lease of one client to another.
func staleClient(name string, lose func(f, other *fixture, l *pawl.Lease)) test {
	return newTest("stale, "+name,
		"A client whose lease was lost to another client gets ErrLeaseLost from every settlement and extension, and "+
			"changes nothing.", func(f *fixture) {
			other := f.another()
			f.add()
			l := f.lease()
			lose(f, other, l)
			unchanged := other.unchanged()
			f.isStale(l)
			unchanged("after the stale calls")
		})
}

// drainsOf lets a client wait for the end of the jobs of another.
func drainsOf(wait pawl.Wait) test {
	return newTest("a drain, "+waits[wait],
		"A drain of one client ends when another client settles the last job, within a minute.", func(f *fixture) {
			other := f.another()
			f.add()
			l := f.lease()
			_, call := other.fetching(f.patient(), pawl.Request{Max: 1, Wait: wait})
			f.pass(2 * time.Second)
			f.waits(call, "while the first client holds the job")
			f.ack(l)
			f.hears(call, pawl.ErrEmpty, "the drain")
		})
}

func severalTests() []test {
	var tests []test
	for _, w := range wakes {
		tests = append(tests, wakesAnother(w))
	}
	tests = append(tests,
		staleClient("expired", func(f, _ *fixture, l *pawl.Lease) { f.expire(l) }),
		staleClient("expired, and leased by the other", func(f, other *fixture, l *pawl.Lease) { f.expire(l); other.lease() }),
		staleClient("expired, and done by the other", func(f, other *fixture, l *pawl.Lease) { f.expire(l); other.ack(other.lease()) }),
		staleClient("released, and leased by the other", func(f, other *fixture, l *pawl.Lease) { f.release(l); other.lease() }),
		drainsOf(pawl.WaitDrained), drainsOf(pawl.WaitFinished))
	tests = append(tests, mutationsOfSeveral, missingRowsOfSeveral)
	return slices.Concat(tests, leavingTests, sharingTests, keysOfSeveralTests, groupsOfSeveralTests, limitsOfSeveralTests, poolsOfSeveralTests())
}

// leavingTests have a client leave behind something that falls due later. Another client has been
// there before, so it does not learn of it by opening the queue.
var leavingTests = []test{
	leftBehind("a delayed job", "A delayed job of a client that closed is ready at its time.",
		func(f *fixture) func(other *fixture) {
			id := f.add(after(time.Hour)).ID
			return func(other *fixture) { equal(other, other.lease().ID, id, "job") }
		}),
	leftBehind("a retry", "A job that a client delayed when it settled, before it closed, is ready at its time.",
		func(f *fixture) func(other *fixture) {
			f.add()
			l := f.lease()
			f.nack(l, time.Hour)
			return func(other *fixture) { equal(other, other.lease().Attempts, 1, "attempts") }
		}),
	leftBehind("a deadline", "A job of a client that closed is dead at its deadline.",
		func(f *fixture) func(other *fixture) {
			id := f.add(within(time.Hour)).ID
			return func(other *fixture) { equal(other, other.must(id).State, pawl.Dead, "state") }
		}),
	leftBehind("a record", "The record of a completed job of a client that closed goes at the end of its time.",
		func(f *fixture) func(other *fixture) {
			id := f.held(pawl.Completed, kept(time.Hour))
			return func(other *fixture) { equal(other, other.job(id) == nil, true, "the record is gone") }
		}),
}

// leftBehind lets a client do something that falls due in an hour, and close. Check runs on a client that
// was open all the time, within a minute of that hour.
func leftBehind(name, rule string, act func(f *fixture) (check func(other *fixture))) test {
	return newTest(name+" of a client that left", rule, func(f *fixture) {
		other, leaving := f.another(), f.another()
		check := act(leaving)
		f.pass(hearsay) // for what the client cleans up by itself
		leaving.close()
		f.pass(time.Hour + hearsay)
		check(other)
	})
}

var sharingTests = []test{
	newTest("jobs are shared",
		"Clients of one queue share its jobs. Each job is leased to one of them, and every job is run to its end.", func(f *fixture) {
			const jobs = 120
			var holders sync.Map
			var acked atomic.Int32
			f.enqueue(newBatch(jobs)...)
			clients := []*fixture{f.another(), f.another(), f.another()}
			f.drain(clients, 6, pawl.Request{Max: 4}, func(q pawl.Queue, i int, leases []*pawl.Lease) {
				for _, l := range leases {
					if _, twice := holders.LoadOrStore(l.ID, i); twice {
						f.Errorf("job %s is leased twice", l.ID)
					}
					if err := q.Settle(f.Context(), l.Ack()); err != nil {
						f.Errorf("ack: %v", err)
					}
					acked.Add(1)
				}
			})
			equal(f, acked.Load(), jobs, "jobs acked")
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs left")
		}),
	newTest("a job of another client",
		"What one client stored, every client sees at once: the job, its state, and its place in the order.", func(f *fixture) {
			other := f.another()
			f.addKinds("a")
			other.addKinds("b")
			f.add(of("d"), priority(-1))
			other.add(of("c"))
			equal(f, kinds(other.leases(2)), "ab", "jobs for the other client")
			equal(f, kinds(f.leases(2)), "cd", "jobs for the first client")
			equal(f, kindsOf(f.list(pawl.Filter{State: pawl.Leased})), kindsOf(other.list(pawl.Filter{State: pawl.Leased})), "leased jobs")
		}),
	newTest("a lease that is extended",
		"A lease holds for as long as its client extends it, whatever other clients do.", func(f *fixture) {
			other := f.another()
			f.add()
			l := f.lease()
			for range 5 {
				f.pass(2 * l.Length / 3)
				equal(f, len(f.extend(l)), 0, "leases lost")
				equal(f, other.reap(), 0, "leases that the other client takes back")
				equal(f, len(other.fetch(9)), 0, "jobs for the other client")
			}
			f.ack(l)
		}),
	newTest("a client that is silent",
		"The lease of a client that does not extend it goes to another client when it expires, with one crash more.", func(f *fixture) {
			other := f.another()
			f.add()
			l := f.lease()
			leases, call := other.fetching(f.patient(), pawl.Request{Max: 1})
			f.until(l.Expires)
			f.waits(call, "before the expiry")
			f.hears(call, nil, "the fetch of the other client")
			equal(f, (*leases)[0].ID, l.ID, "job")
			equal(f, (*leases)[0].Crashes, 1, "crashes")
		}),
	newTest("a cancel",
		"A cancel reaches the lease that another client holds, within a minute. Its end is that of the contract.", func(f *fixture) {
			other := f.another()
			f.add()
			l := f.lease()
			fired := make(chan error, 1)
			l.Cancelled.OnFire(func() { fired <- nil })
			other.cancel(l.ID)
			for range 3 {
				f.pass(l.Length / 3)
				equal(f, len(f.extend(l)), 0, "leases lost")
			}
			f.hears(fired, nil, "the signal of the lease")
			f.release(l)
			equal(f, other.must(l.ID).Death.Reason, pawl.ReasonCancelled, "reason")
		}),
	newTest("a pause", "A pause by one client holds for all of them, and so does its end.", func(f *fixture) {
		other := f.another()
		f.add()
		other.pause(pawl.DefaultQueue)
		equal(f, len(f.fetch(9)), 0, "jobs of the paused queue")
		f.resume(pawl.DefaultQueue)
		other.lease()
	}),
	newTest("a step of the clock",
		"A step of the wall clock takes no lease from a client that extends it, whatever the other clients do. A "+
			"client that ended loses its leases also when the clock was set back.", func(f *fixture) {
			for _, step := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
				c := f.clocked()
				other, leaving := f.another(), f.another()
				f.add(of("held"))
				l := f.lease()
				f.add(of("left"))
				id := leaving.lease().ID
				leaving.close()
				other.pass(hearsay / 6)
				c.step(step)
				for range 9 {
					f.pass(l.Length / 3)
					equal(f, len(f.extend(l)), 0, "leases lost")
					other.reap()
				}
				f.ack(l)
				equal(f, other.lease().ID, id, "the job of the client that closed")
			}
		}).needing(clocked),
	newTest("a client that closes",
		"Close of one client ends its own calls. The others go on, and so do their leases and fetches.", func(f *fixture) {
			other := f.another()
			f.add()
			l := f.lease()
			_, theirs := other.fetching(f.patient(), pawl.Request{Max: 1})
			leases, ours := f.fetching(f.patient(), pawl.Request{Max: 1})
			other.close()
			f.ends(theirs, pawl.ErrClosed, "the fetch of the client that closed")
			f.waits(ours, "the fetch of the other")
			f.ack(l)
			id := f.add().ID
			f.gets(ours, leases, id, "the fetch of the other")
		}),
	newTest("a repeat suspect", "Of the repeat suspects one is leased at a time, over all clients.", func(f *fixture) {
		other := f.another()
		f.crashedJobs(2, "ab")
		l := f.lease()
		equal(f, len(other.fetch(9)), 0, "jobs for the other client")
		f.ack(l)
		other.lease()
	}).needing(suspecting),
}

var keysOfSeveralTests = []test{
	newTest("a unique key", "A unique key holds over all clients.", func(f *fixture) {
		other := f.another()
		id := f.add(unique("key")).ID
		equal(f, other.add(unique("key")).ID, id, "the job that has the key")
		other.is(other.try(newcomer("x", answer(pawl.Reject))), pawl.ErrConflict, "enqueue")
		other.ack(other.lease())
		equal(f, f.add(unique("key")).ID == id, false, "the first job has the key still")
	}),
	newTest("a unique key at once",
		"Of many clients that enqueue one unique key at once, one stores a job, and the others are given it.", func(f *fixture) {
			clients := []*fixture{f, f.another(), f.another()}
			ids := make([]pawl.ID, 10*len(clients))
			var wg sync.WaitGroup
			for i := range ids {
				wg.Go(func() {
					e := newcomer("x")
					if err := clients[i%len(clients)].try(e); err != nil {
						f.Errorf("enqueue: %v", err)
					}
					ids[i] = e.ID
				})
			}
			wg.Wait()
			jobs := f.list(pawl.Filter{})
			equal(f, len(jobs), 1, "jobs")
			for _, id := range ids {
				equal(f, id, jobs[0].ID, "the job that a caller was given")
			}
		}).alsoRequiring(pawl.UniqueKeys),
	newTest("an ID at once", "Of many clients that enqueue one ID at once, one stores a job, and the others get ErrConflict.", func(f *fixture) {
		f.oneID(f, f.another(), f.another())
	}).needing(knowingIDs),
	newTest("an idempotency key",
		"One job of an idempotency key is leased at a time, over all clients, and its success counts for all of them.", func(f *fixture) {
			other := f.another()
			f.add(effect("x"))
			other.add(effect("x"))
			l := f.leases(1)[0]
			equal(f, len(other.fetch(9)), 0, "jobs beside it")
			f.ack(l)
			equal(f, len(other.fetch(9)), 0, "jobs after the success")
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs left")
		}),
	newTest("one settlement of many",
		"Of many settlements of one lease through several clients at once, one counts.", func(f *fixture) {
			clients := []*fixture{f, f.another(), f.another()}
			id := f.add().ID
			l := f.lease()
			f.atOnce(4*len(clients), pawl.ErrLeaseLost, func(i int) error {
				return clients[i%len(clients)].q.Settle(f.Context(), l.Nack(time.Hour, errBoom))
			})
			equal(f, f.must(id).Attempts, 1, "attempts")
		}),
}
