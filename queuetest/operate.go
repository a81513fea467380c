package queuetest

import (
	"context"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// operation is what an operator does to one job. A retry may keep the attempts.
type operation struct {
	verb pawl.Verb
	name string // for cases
	can  func(q pawl.Queue) bool
	do   func(f *fixture, id pawl.ID, keep bool) error
}

// is reports whether a queue is a T.
func is[T any](q pawl.Queue) bool { _, ok := q.(T); return ok }

var (
	cancelling = operation{pawl.VerbCancel, "Cancel", is[Canceller], func(f *fixture, id pawl.ID, _ bool) error { return f.canceller().Cancel(f.Context(), id) }}
	retrying   = operation{pawl.VerbRetry, "Retry", is[Retrier], func(f *fixture, id pawl.ID, keep bool) error { return f.retrier().Retry(f.Context(), id, keep) }}
	deleting   = operation{pawl.VerbDelete, "Delete", is[Deleter], func(f *fixture, id pawl.ID, _ bool) error { return f.deleter().Delete(f.Context(), id) }}
	runningNow = operation{pawl.VerbRunNow, "RunNow", is[NowRunner], func(f *fixture, id pawl.ID, _ bool) error { return f.nowRunner().RunNow(f.Context(), id) }}
	releasing  = operation{pawl.VerbReleaseKey, "Change with " + string(pawl.VerbReleaseKey), is[Changer], func(f *fixture, id pawl.ID, _ bool) error {
		return f.change(pawl.Change{Verb: pawl.VerbReleaseKey}, id)[0]
	}}
)

// unknownJob is the case of a job that the queue does not hold.
func (o operation) unknownJob(name string) test {
	return newTest(name, o.name+" of a job that the queue does not hold returns ErrNotFound.", func(f *fixture) {
		f.is(o.do(f, pawl.NewID(time.Now()), false), pawl.ErrNotFound, "a job that never was")
		id := f.add().ID
		f.ack(f.lease())
		f.is(o.do(f, id, false), pawl.ErrNotFound, "a job that is done")
	})
}

// wrongState is the case of a job in a state that the operation refuses.
func (o operation) wrongState(name, rule string, state pawl.State) test {
	return newTest(name+string(state), rule, func(f *fixture) {
		id := f.held(state)
		unchanged := f.unchanged()
		f.is(o.do(f, id, false), pawl.ErrConflict, o.name)
		unchanged("after the refusal")
	})
}

func deadTests() (tests []test) {
	for _, keep := range []bool{false, true} {
		tests = append(tests,
			newTest(fmt.Sprintf("retry, attempts kept: %v", keep),
				"Retry makes a dead job ready since now. Its attempts start at 0 unless they are kept, and nothing else "+
					"changes.", func(f *fixture) {
					id := f.add(priority(7)).ID
					f.nack(f.lease(), 0)
					f.abandon(f.lease())
					want := f.must(id)
					equal(f, want.Attempts, 2, "attempts")
					f.pass(time.Hour)
					f.retry(id, keep)
					want.State, want.Death, want.NotBefore = pawl.Ready, nil, time.Now()
					if !keep {
						want.Attempts = 0
					}
					f.same(f.must(id), want, "the job")
					l := f.lease()
					equal(f, l.Attempts, want.Attempts, "attempts before the next one")
				}),
		)
	}
	for _, state := range states[:len(states)-1] {
		tests = append(tests, retrying.wrongState("retry of a job that is ", "Retry accepts dead jobs only. Any other job "+
			"gives ErrConflict and stays unchanged.", state))
	}
	return append(tests, retrying.unknownJob("retry of no job"),
		newTest("stays dead", "A dead job stays dead until someone retries it. No fetch and no passing of time makes it "+
			"ready.", func(f *fixture) {
			id := f.held(pawl.Dead)
			f.pass(f.long())
			f.reap()
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			equal(f, f.must(id).State, pawl.Dead, "state")
		}),
		newTest("becomes dead again", "A dead job that is retried may become dead again, for another reason.", func(f *fixture) {
			id := f.held(pawl.Dead)
			f.retry(id, false)
			f.pass(time.Second)
			f.ok(f.q.Settle(f.Context(), f.lease().Abandon(pawl.ReasonPermanent, errBoom)), "abandon")
			e := f.must(id)
			equal(f, e.Death.Reason, pawl.ReasonPermanent, "reason")
			f.sameTime(e.Death.At, time.Now(), "time of death")
			equal(f, e.Attempts, 1, "attempts")
			equal(f, e.Failures, 2, "failures")
		}),
		newTest("retried on its queue", "A dead job that is retried is on the queue on which it became dead.", func(f *fixture) {
			id := f.held(pawl.Dead, on("q"))
			f.retry(id, false)
			equal(f, len(f.fetch(9)), 0, "jobs on the default queue")
			equal(f, f.lease("q").ID, id, "job")
		}),
	)
}

func (f *fixture) deleter() Deleter { return able[Deleter](f) }

// remove deletes a dead or completed job.
func (f *fixture) remove(id pawl.ID) {
	f.Helper()
	f.ok(f.deleter().Delete(f.Context(), id), "delete")
}

func deleteTests() (tests []test) {
	ended := []pawl.State{pawl.Dead, pawl.Completed}
	for _, state := range ended {
		tests = append(tests,
			newTest("a job that is "+string(state), "Delete removes a dead or completed job for good.", func(f *fixture) {
				id, other := f.held(state), f.held(state)
				f.remove(id)
				equal(f, f.job(id) == nil, true, "the job is gone")
				f.sameJobs(idsOf(f.list(pawl.Filter{})), []pawl.ID{other}, "all jobs")
				f.sameJobs(idsOf(f.list(pawl.Filter{State: state})), []pawl.ID{other}, "jobs of the state")
				f.is(f.deleter().Delete(f.Context(), id), pawl.ErrNotFound, "delete once more")
				f.is(f.retrier().Retry(f.Context(), id, false), pawl.ErrNotFound, "retry")
				f.pass(100 * time.Hour)
				equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			}),
			newTest("counts of what is "+string(state), "A deleted job is not counted.", func(f *fixture) {
				for range 2 {
					f.held(state)
				}
				id := f.held(state)
				want := pawl.Counts{}
				*driver.CountOf(&want, state) = 3
				f.countsAre(pawl.DefaultQueue, want, "the ends of three jobs")
				f.remove(id)
				*driver.CountOf(&want, state) = 2
				f.countsAre(pawl.DefaultQueue, want, "the delete of one")
			}),
		)
	}
	for _, state := range []pawl.State{pawl.Ready, pawl.Delayed, pawl.Leased} {
		tests = append(tests, deleting.wrongState("a job that is ", "Delete accepts jobs that have ended. Any other job "+
			"gives ErrConflict and stays unchanged.", state))
	}
	return append(tests, deleting.unknownJob("no job"),
		newTest("the ID is free", "The ID of a deleted job may be used again, for a job without a past.", func(f *fixture) {
			for _, state := range ended {
				id := f.add().ID
				f.nack(f.lease(), 0)
				if l := f.lease(); state == pawl.Dead {
					f.abandon(l)
				} else {
					f.ack(l)
					id = f.held(pawl.Completed)
				}
				f.remove(id)
				f.add(func(e *pawl.Envelope) { e.ID = id })
				e := f.must(id)
				equal(f, e.Attempts, 0, "attempts")
				f.hasHistory(e, nil, 0)
				f.ack(f.lease())
			}
		}),
		newTest("the unique key is free", "A deleted job blocks no other job.", func(f *fixture) {
			for _, state := range ended {
				key := func(e *pawl.Envelope) {
					e.UniqueKey, e.UniqueIn, e.OnConflict = "u", []pawl.State{pawl.Dead, pawl.Completed}, pawl.Reject
				}
				id := f.held(state, key)
				e := &pawl.Envelope{Kind: "k"}
				key(e)
				f.is(f.try(e), pawl.ErrConflict, "enqueue while the key is taken")
				f.remove(id)
				for _, next := range []*pawl.Envelope{{Kind: "k", UniqueKey: "u", OnConflict: pawl.Reject}, e} {
					f.ok(f.try(next), "enqueue after the delete")
					f.ack(f.lease())
				}
			}
		}),
		restartTest("after a restart", "A delete is durable when it returns.", func(f *fixture) {
			for _, state := range ended {
				f.remove(f.held(state))
			}
			kept := f.held(pawl.Dead)
			f.restart()
			f.sameJobs(idsOf(f.list(pawl.Filter{})), []pawl.ID{kept}, "jobs")
		}),
		tooLate("not accepted",
			"A delete whose context has ended returns ErrNotAccepted and changes nothing. A delete after Close returns "+
				"ErrClosed.", pawl.ErrNotAccepted, func(f *fixture) []func(context.Context) error {
				d, id := f.deleter(), f.held(pawl.Dead)
				return []func(context.Context) error{func(ctx context.Context) error { return d.Delete(ctx, id) }}
			}),
	)
}
