package queuetest

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
)

// Transferer is a queue whose dead jobs can be replaced by other jobs.
type Transferer interface {
	// Transfer replaces the dead job that has the ID of the given job, as one
	// transition. A job that is not dead gives pawl.ErrConflict, and an unknown job
	// gives pawl.ErrNotFound.
	Transfer(ctx context.Context, job *pawl.Envelope, when pawl.Condition) error
}

func (f *fixture) transferer() Transferer { return able[Transferer](f) }

func transferTests() (tests []test) {
	tests = []test{
		newTest("a dead job", "A transfer replaces a dead job with a job of the same ID, which starts over.", func(f *fixture) {
			tr := f.transferer()
			id, other := f.held(pawl.Dead), f.held(pawl.Dead)
			job := &pawl.Envelope{ID: id, Kind: "moved", Queue: "elsewhere", Payload: []byte("new"), MaxRetries: 7, Priority: 3}
			leftAlone := f.arguments(job)
			f.ok(tr.Transfer(f.Context(), job, nil), "transfer")
			leftAlone("the transfer")
			got, want := f.must(id), accepted(job, time.Now())
			want.State = pawl.Ready
			f.same(got, want, "the job in its place")
			equal(f, len(got.History), 0, "entries of its history")
			equal(f, got.Attempts, 0, "attempts")
			f.sameJobs(idsOf(f.list(pawl.Filter{State: pawl.Dead})), []pawl.ID{other}, "dead jobs")
			equal(f, f.lease("elsewhere").ID, id, "the job that is fetched")
		}),
		newTest("with a delay", "A job that replaces a dead job may be delayed like any other.", func(f *fixture) {
			tr := f.transferer()
			id := f.held(pawl.Dead)
			f.ok(tr.Transfer(f.Context(), &pawl.Envelope{ID: id, Kind: "k", Delay: time.Minute}, nil), "transfer")
			equal(f, f.must(id).State, pawl.Delayed, "state")
			f.pass(time.Minute)
			equal(f, f.lease().ID, id, "the job that is fetched")
		}),
		newTest("counts", "After a transfer, the counts have the new job and no longer the dead one.", func(f *fixture) {
			tr := f.transferer()
			id := f.held(pawl.Dead)
			f.ok(tr.Transfer(f.Context(), &pawl.Envelope{ID: id, Kind: "k", Queue: "elsewhere"}, nil), "transfer")
			f.countsAre(pawl.DefaultQueue, pawl.Counts{}, "the transfer")
			f.countsAre("elsewhere", pawl.Counts{Ready: 1}, "the transfer")
		}),
		newTest("no job", "Transfer of an unknown job is refused, and nothing is stored.", func(f *fixture) {
			tr := f.transferer()
			e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k"}
			f.is(tr.Transfer(f.Context(), e, nil), pawl.ErrNotFound, "transfer")
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs")
		}),
		newTest("a bad job",
			"Transfer refuses a job that Enqueue would refuse, and a job with a unique key.", func(f *fixture) {
				tr := f.transferer()
				id := f.held(pawl.Dead)
				before := f.must(id)
				f.is(tr.Transfer(f.Context(), &pawl.Envelope{ID: id}, nil), pawl.ErrInvalid, "a job without a kind")
				f.is(tr.Transfer(f.Context(), &pawl.Envelope{ID: id, Kind: "k", UniqueKey: "u"}, nil), pawl.ErrInvalid, "a unique key")
				f.same(f.must(id), before, "the dead job")
			}),
	}
	for _, state := range []pawl.State{pawl.Ready, pawl.Delayed, pawl.Leased, pawl.Completed} {
		tests = append(tests,
			newTest("a job that is "+string(state), "Only a dead job can be replaced.", func(f *fixture) {
				tr := f.transferer()
				id := f.held(state)
				before := f.must(id)
				f.is(tr.Transfer(f.Context(), &pawl.Envelope{ID: id, Kind: "other"}, nil), pawl.ErrConflict, "transfer")
				f.same(f.must(id), before, "the job")
			}),
		)
	}
	return tests
}
