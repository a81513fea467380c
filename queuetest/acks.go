package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
)

// acks acks leases in one call. The error must name exactly the lost leases.
func (f *fixture) acks(leases []*pawl.Lease, lost ...*pawl.Lease) {
	f.Helper()
	err := f.q.Settle(f.Context(), acksOf(leases)...)
	if len(lost) == 0 {
		f.ok(err, "ack")
		return
	}
	f.is(err, pawl.ErrLeaseLost, "ack")
	failed := f.failed(err)
	for _, l := range lost {
		f.is(failed[l], pawl.ErrLeaseLost, fmt.Sprintf("ack of job %s with token %d", l.ID, l.Token))
	}
	equal(f, len(failed), len(lost), "leases that could not be acked")
}

// failed returns the leases that the error of an ack names.
func (f *fixture) failed(err error) map[*pawl.Lease]error {
	f.Helper()
	var part *pawl.SettleError
	if !errors.As(err, &part) {
		f.Fatalf("ack: error %v, want one that names leases", err)
	}
	return part.Failed
}

// refused requires that an ack failed as a whole.
func (f *fixture) refused(err, want error) {
	f.Helper()
	f.is(err, want, "ack")
	var part *pawl.SettleError
	equal(f, errors.As(err, &part), false, "the error names single leases")
}

// acksOf returns settlements that ack leases.
func acksOf(leases []*pawl.Lease) []pawl.Settlement {
	acks := make([]pawl.Settlement, len(leases))
	for i, l := range leases {
		acks[i] = l.Ack()
	}
	return acks
}

// forged returns a lease of the same job with a token that the queue never granted.
func forged(l *pawl.Lease) *pawl.Lease {
	return &pawl.Lease{Envelope: l.Envelope, Token: l.Token ^ 1<<40}
}

// ackTests cover one call that settles any number of leases.
func ackTests() []test {
	return []test{
		newTest("several",
			"One ack ends all the leases that it names, in any order and on any queues, and no other lease.", func(f *fixture) {
				f.addKinds("a", "b", "c", "d", "e")
				f.add(on("q"))
				leases := slices.Concat(f.leases(4), f.leases(1, "q"))
				other := f.must(leases[1].ID)
				f.acks([]*pawl.Lease{leases[4], leases[2], leases[0], leases[3]})
				equal(f, kindsOf(f.list(pawl.Filter{})), "be", "jobs left")
				f.same(f.must(other.ID), other, "the job of a lease that was not given")
				equal(f, kinds(f.fetch(9, pawl.DefaultQueue, "q")), "e", "jobs to fetch")
				f.ack(leases[1])
			}),
		newTest("none", "An ack of no leases does nothing and returns no error.", func(f *fixture) {
			f.populated()
			unchanged := f.unchanged()
			f.ok(f.q.Settle(f.Context()), "ack of no lease")
			unchanged("after the ack")
		}),
		newTest("stale ones among them",
			"Each lease of an ack counts by itself. The error names the stale leases, and their jobs stay unchanged. All "+
				"other leases are acked.", func(f *fixture) {
				f.add(of("e"))
				expired := f.lease()
				f.expire(expired)
				f.addKinds("a", "b", "c", "d")
				leases := f.leases(5)
				equal(f, kinds(leases), "eabcd", "jobs")
				e, a, b, c, d := leases[0], leases[1], leases[2], leases[3], leases[4]
				f.ack(b)
				f.release(d)
				again := f.lease()
				before := []*pawl.Envelope{f.must(e.ID), f.must(d.ID)}
				guess := forged(c)
				never := &pawl.Lease{Envelope: &pawl.Envelope{ID: pawl.NewID(time.Now())}, Token: c.Token}
				f.acks([]*pawl.Lease{expired, a, b, guess, d, never, c}, expired, b, guess, d, never)
				equal(f, kindsOf(f.list(pawl.Filter{})), "ed", "jobs left")
				for _, want := range before {
					f.same(f.must(want.ID), want, "a job whose lease was stale")
				}
				f.acks([]*pawl.Lease{again, e})
				equal(f, len(f.list(pawl.Filter{})), 0, "jobs left in the end")
			}).needing(ordering),
		newTest("stale ones alone", "An ack whose leases are all stale names all of them and changes nothing.", func(f *fixture) {
			f.add(of("a"), kept(time.Hour))
			f.addKinds("b", "c")
			leases := f.leases(3)
			f.ack(leases[0])
			f.nack(leases[1], 0)
			unchanged := f.unchanged()
			stale := []*pawl.Lease{leases[0], leases[1], forged(leases[2])}
			f.acks(stale, stale...)
			unchanged("after the ack")
		}),
		newTest("one lease twice",
			"A lease that appears twice in one ack is acked once. The error names it as lost, although its job is done.", func(f *fixture) {
				id := f.add(of("a"), kept(time.Hour)).ID
				f.addKinds("b", "c")
				leases := f.leases(3)
				a, b, c := leases[0], leases[1], leases[2]
				equal(f, a.ID, id, "the first job")
				double := &pawl.Lease{Envelope: c.Envelope, Token: c.Token}
				f.acks([]*pawl.Lease{a, b, a, c, a, double}, a, double)
				equal(f, kindsOf(f.list(pawl.Filter{})), "a", "jobs left")
				record := f.must(id)
				equal(f, record.State, pawl.Completed, "state")
				equal(f, record.Attempts, 1, "attempts")
				f.sameTime(record.Completed, time.Now(), "time of the success")
			}),
		newTest("more than one call takes", "An ack has at most 10 000 leases. A larger one returns ErrBatchTooLarge and "+
			"acks none.", func(f *fixture) {
			f.addKinds("a", "b")
			leases := f.leases(2)
			unchanged := f.unchanged()
			all := slices.Repeat(leases, pawl.MaxBatchJobs/2)
			f.refused(f.q.Settle(f.Context(), acksOf(append(all, leases[0]))...), pawl.ErrBatchTooLarge)
			unchanged("after the refusal")
			f.acks(all, leases...) // each of them once, and as lost each further time
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs left")
		}),
		newTest("records and keys",
			"An ack of several leases leaves for each job what an ack of one lease leaves: a completed job for "+
				"its retention, a done idempotency key, and a free unique key.", func(f *fixture) {
				again := func(kind string) pawl.ID { return f.add(ofKey(kind, "x")).ID }
				f.addKinds("a")
				record := f.add(of("b"), kept(time.Minute)).ID
				f.add(of("c"), effect("x"), ttl(time.Hour))
				both := f.add(of("d"), effect("x"), kept(time.Hour), ttl(time.Minute), func(e *pawl.Envelope) { e.Payload = make([]byte, 3000) }).ID
				f.add(of("e"), unique("key"), within(time.Minute), func(e *pawl.Envelope) { e.Payload = make([]byte, 3000) })
				stale := again("f")
				leases := f.leases(6)
				f.release(leases[5])
				f.pass(time.Second)
				f.acks(slices.Concat(leases[3:], leases[:3]), leases[5])
				l := f.lease()
				equal(f, l.ID, stale, "the job whose ack was stale, and its key not done")
				f.ack(l)
				equal(f, kindsOf(f.list(pawl.Filter{State: pawl.Completed})), "bd", "records")
				for _, id := range []pawl.ID{record, both} {
					equal(f, f.must(id).Attempts, 1, "attempts of a record")
					f.sameTime(f.must(id).Completed, time.Now(), "time of its success")
				}
				f.skips(again("c"), "whose key is done")
				f.skips(again("d"), "whose key is done beside a completed job")
				f.keyIsFree("after the ack")
				f.pass(time.Minute)
				equal(f, kindsOf(f.list(pawl.Filter{State: pawl.Completed})), "d", "records after a minute")
				f.skips(again("c"), "whose key is done for an hour")
				id := again("d")
				equal(f, f.lease().ID, id, "the job whose key was done for a minute")
			}),
		newTest("cancelled and late ones",
			"An ack of several leases also succeeds for jobs that were cancelled or are past their deadlines.", func(f *fixture) {
				f.add(of("a"), kept(time.Hour))
				f.add(of("b"), kept(time.Hour), within(time.Second))
				f.add(of("c"), kept(time.Hour))
				leases := f.leases(3)
				f.cancel(leases[0].ID)
				f.pass(2 * time.Second)
				f.acks(leases)
				equal(f, kindsOf(f.list(pawl.Filter{State: pawl.Completed})), "abc", "records")
			}),
		newTest("counts", "After an ack, each job leaves the counts of its own queue, or is counted there as completed.", func(f *fixture) {
			f.fill(3, "x")
			f.fill(2, "y")
			f.add(onQueue("y"), kept(time.Hour))
			x, y := f.leases(3, "x"), f.leases(3, "y")
			guess := forged(y[1])
			f.acks([]*pawl.Lease{x[0], y[0], guess, x[2], x[0], y[2]}, guess, x[0])
			f.countsAre("x", pawl.Counts{Leased: 1}, "the ack")
			f.countsAre("y", pawl.Counts{Leased: 1, Completed: 1}, "the ack")
		}),
		newTest("reported and counted",
			"Each success of an ack is reported and counted once, with its own attempt. A lease that cannot be acked is "+
				"not reported.", func(f *fixture) {
				w := f.witnessed(Settings{})
				f.addKinds("a", "b", "c", "d")
				f.pass(time.Second)
				f.nack(f.leases(1)[0], 0)
				leases := f.leases(4)
				equal(f, kinds(leases), "bcda", "jobs")
				for i, l := range leases {
					l.Started = time.Now().Add(time.Duration(-i) * time.Second)
					l.TimedOut = i == 2
				}
				counted := newFigures()
				for _, e := range w.taken() {
					counted.add(e)
				}
				guess := forged(leases[1])
				f.acks([]*pawl.Lease{leases[3], guess, leases[0], leases[2], leases[0], leases[3]}, guess, leases[0], leases[3])
				events := w.taken()
				equal(f, w.late, "", "an event whose time is not that of its transition")
				by := make(map[string]string)
				for _, e := range events {
					counted.add(e)
					by[e.Job.Kind] += fmt.Sprintf("%s, attempts %d, took %v, timed out %v;", e.Type, e.Job.Attempts, e.Took, e.TimedOut)
				}
				equal(f, len(events), 3, "events")
				equal(f, by["a"], "succeeded, attempts 2, took 3s, timed out false;", "what was by of a")
				equal(f, by["b"], "succeeded, attempts 1, took 0s, timed out false;", "what was by of b")
				equal(f, by["d"], "succeeded, attempts 1, took 2s, timed out true;", "what was by of d")
				f.ok(counted.compare(w.tally.Snapshot()), "count")
			}).needing(ordering),
		newTest("and a fetch that waits",
			"An ack wakes fetches that wait for the end of its leases: a drain ends, and the next repeat suspect can be "+
				"leased.", func(f *fixture) {
				f.fill(3, "q")
				leases := f.leases(3, "q")
				for _, wait := range []pawl.Wait{pawl.WaitDrained, pawl.WaitFinished} {
					_, call := f.fetching(f.Context(), pawl.Request{Max: 1, Wait: wait, Queues: []string{"q"}})
					f.waits(call, "while jobs are leased")
					if wait == pawl.WaitDrained {
						f.acks(leases[:2])
						f.waits(call, "while one is leased still")
						f.acks(leases[1:], leases[1])
					} else {
						f.acks(leases)
					}
					f.ends(call, pawl.ErrEmpty, waits[wait])
					f.fill(3, "q")
					leases = f.leases(3, "q")
				}
				f.acks(leases)

				f.crashedJobs(2, "ab")
				f.add(of("x"))
				first := f.fetch(9)
				equal(f, kinds(first), "ax", "jobs of the first fetch")
				next, call := f.fetching(f.Context(), pawl.Request{Max: 1})
				f.waits(call, "while one that crashed twice is leased")
				f.acks([]*pawl.Lease{first[1], first[0]})
				f.ends(call, nil, "fetch")
				equal(f, kinds(*next), "b", "the next")
			}).needing(suspecting),
		newTest("not accepted",
			"An ack of several leases whose context has ended acks none of them. Its error does not name single leases.", func(f *fixture) {
				f.addKinds("a", "b")
				leases := f.leases(2)
				unchanged := f.unchanged()
				ctx := f.ended()
				err := f.q.Settle(ctx, leases[0].Ack(), leases[1].Ack(), forged(leases[0]).Ack())
				f.refused(err, pawl.ErrNotAccepted)
				f.is(err, context.Canceled, "ack")
				unchanged("after the refusal")
				f.acks(leases)
			}),
		newTest("many at once", "When several acks have the same leases, exactly one of them acks each lease.", func(f *fixture) {
			const callers = 8
			batch := newBatch(60, kept(time.Hour))
			f.enqueue(batch...)
			leases := f.leases(len(batch))
			acked := make([]atomic.Int32, len(leases))
			var wg sync.WaitGroup
			for n := range callers {
				wg.Go(func() {
					for i := range len(leases) / 6 { // six at a time, each caller from another place on
						from := (i*6 + n*7) % len(leases)
						given := slices.Concat(leases[from:], leases[:from])[:6]
						err := f.q.Settle(f.Context(), acksOf(given)...)
						var part *pawl.SettleError
						if err != nil && !errors.As(err, &part) {
							f.Errorf("ack: %v", err)
							return
						}
						for k, l := range given {
							if part == nil || part.Failed[l] == nil {
								acked[(from+k)%len(leases)].Add(1)
							}
						}
					}
				})
			}
			wg.Wait()
			for i := range acked {
				equal(f, acked[i].Load(), 1, "acks of a lease that went through")
				equal(f, f.must(leases[i].ID).Attempts, 1, "attempts")
			}
		}),
		restartTest("over a restart",
			"Everything that an ack ended is durable when it returns: no job comes back, and completed jobs and done keys "+
				"stay.", func(f *fixture) {
				f.addKinds("a", "b")
				f.add(of("c"), effect("x"), ttl(time.Hour))
				record := f.add(of("d"), kept(time.Hour)).ID
				f.addKinds("e")
				leases := f.leases(5)
				guess := forged(leases[4])
				f.acks(append(leases[:4:4], guess), guess)
				f.release(leases[4])
				want := f.must(record)
				f.restart()
				equal(f, kindsOf(f.list(pawl.Filter{})), "de", "jobs after the restart")
				f.same(f.must(record), want, "the record")
				f.add(of("c"), effect("x"))
				equal(f, kinds(f.fetch(9)), "e", "jobs to fetch")
				equal(f, strings.Contains(kindsOf(f.list(pawl.Filter{})), "c"), false, "the job whose key is done is there")
			}),
		newTest("every outcome in one call",
			"One Settle takes leases with every outcome. Each ends as it would alone, and the error names the stale ones.", func(f *fixture) {
				f.addKinds("a", "b", "c", "d", "e", "f")
				leases := f.leases(6)
				lost := leases[5]
				f.ack(lost)
				f.pass(time.Second)
				err := f.q.Settle(f.Context(), leases[0].Ack(), leases[1].Nack(time.Minute, errBoom),
					leases[2].Abandon(pawl.ReasonPermanent, errBoom), lost.Nack(0, errBoom),
					leases[3].Release(), leases[4].Snooze(2*time.Minute))
				f.is(err, pawl.ErrLeaseLost, "settle")
				failed := f.failed(err)
				equal(f, len(failed), 1, "leases that could not be settled")
				f.is(failed[lost], pawl.ErrLeaseLost, "the stale one")
				f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 1, Delayed: 2, Dead: 1}, "the settle")
				equal(f, f.job(leases[0].ID) == nil, true, "the job that was acked is gone")
				history := []pawl.Failure{{Attempt: 1, At: time.Now(), Error: errBoom.Error()}}
				f.hasHistory(f.must(leases[1].ID), history, 1)
				f.hasHistory(f.must(leases[2].ID), history, 1)
				equal(f, f.must(leases[2].ID).Death.Reason, pawl.ReasonPermanent, "reason")
				l := f.lease()
				equal(f, l.Kind, "d", "the job to fetch")
				f.ack(l)
				f.pass(time.Minute)
				l = f.lease()
				equal(f, l.Kind, "b", "the job to fetch after a minute")
				f.ack(l)
				f.pass(time.Minute)
				equal(f, f.lease().Kind, "e", "the job to fetch after two")
			}),
		newTest("one job with two outcomes",
			"When one call settles a job twice, the first settlement counts, and the error names the second with "+
				"ErrLeaseLost.", func(f *fixture) {
				f.addKinds("a", "b")
				leases := f.leases(2)
				other := &pawl.Lease{Envelope: leases[1].Envelope, Token: leases[1].Token}
				err := f.q.Settle(f.Context(), leases[0].Nack(0, errBoom), leases[1].Release(), leases[0].Ack(), other.Abandon(pawl.ReasonPermanent, nil))
				failed := f.failed(err)
				equal(f, len(failed), 2, "leases that are named")
				f.is(failed[leases[0]], pawl.ErrLeaseLost, "the second settlement of the first job")
				f.is(failed[other], pawl.ErrLeaseLost, "the second settlement of the other")
				equal(f, f.must(leases[0].ID).Attempts, 1, "attempts of the first job")
				f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 2}, "the settle")
			}),
		newTest("no settlement",
			"A settlement without a lease or without an outcome returns ErrInvalid, and the call settles nothing.", func(f *fixture) {
				f.addKinds("a")
				l := f.lease()
				unchanged := f.unchanged()
				for _, s := range []pawl.Settlement{{}, {Lease: l}, {Lease: l, Outcome: "dance"}, new(pawl.Lease).Ack()} {
					f.refused(f.q.Settle(f.Context(), l.Ack(), s), pawl.ErrInvalid)
				}
				unchanged("after the refusals")
			}),
		restartTest("failures over a restart",
			"Everything that a Settle did is durable when it returns: attempts, histories, deaths, and delays.", func(f *fixture) {
				f.addKinds("a", "b", "c", "d")
				leases := f.leases(4)
				f.ok(f.q.Settle(f.Context(), leases[0].Nack(time.Hour, errBoom), leases[1].Abandon(pawl.ReasonExhausted, errBoom),
					leases[2].Release(), leases[3].Snooze(time.Hour)), "settle")
				before := f.list(pawl.Filter{})
				f.restart()
				for _, want := range before {
					f.same(f.must(want.ID), want, "a job after the restart")
				}
			}),
	}
}
