package queuetest

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

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
		newTest("not accepted",
			"A delete whose context has ended returns ErrNotAccepted and changes nothing. A delete after Close returns "+
				"ErrClosed.", func(f *fixture) {
				id := f.held(pawl.Dead)
				d := f.deleter()
				ctx, cancel := context.WithCancel(f.Context())
				cancel()
				f.is(d.Delete(ctx, id), pawl.ErrNotAccepted, "delete")
				equal(f, f.must(id).State, pawl.Dead, "state")
				f.closed()
				f.is(d.Delete(f.Context(), id), pawl.ErrClosed, "delete")
			}),
	)
}
