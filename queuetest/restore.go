package queuetest

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Restorer is a queue that takes over the jobs and the idempotency keys of another queue.
type Restorer interface {
	// Restore stores jobs in the state of their envelopes, and effects, all or none. It
	// refuses what driver.CheckRestore refuses. An ID or a unique key that is taken gives
	// pawl.ErrConflict.
	Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error

	// Effects reads at most max of the idempotency keys that count as done, after a
	// cursor.
	Effects(ctx context.Context, after string, max int) (effects []driver.Effect, next string, err error)
}

func (f *fixture) restorer() Restorer { return able[Restorer](f) }

// restore restores jobs that must be accepted, and requires that the call leaves its arguments
// unchanged.
func (f *fixture) restore(jobs []*pawl.Envelope, effects ...driver.Effect) {
	f.Helper()
	leftAlone := f.arguments(jobs...)
	f.ok(f.restorer().Restore(f.Context(), jobs, effects), "restore")
	leftAlone("the restore")
}

// effects reads all effects in pages of a size.
func (f *fixture) effects(size int) (all []driver.Effect) {
	f.Helper()
	for after := ""; ; {
		page, next, err := f.restorer().Effects(f.Context(), after, size)
		f.ok(err, "effects")
		if len(page) > size {
			f.Fatalf("a page of %d effects, at most %d were asked for", len(page), size)
		}
		all = append(all, page...)
		if after = next; after == "" {
			return all
		}
	}
}

var restoreTests = []test{
	newTest("in their states",
		"A restored job has the state, counters, history, and times that it had in another queue. A leased job is ready, "+
			"in its old place, without a crash.", func(f *fixture) {
			f.restorer()
			for _, state := range byTheirEnd {
				f.held(state, on("a"), header("h", "v"), unique("u-"+string(state)), func(e *pawl.Envelope) { e.Payload = make([]byte, 2000) })
				f.pass(time.Second)
			}
			f.add(on("retry"))
			f.nack(f.lease("retry"), time.Hour)
			want := f.list(pawl.Filter{})
			f.fresh(f.settings)
			f.restore(want)
			got := f.list(pawl.Filter{})
			f.sameJobs(idsOf(got), idsOf(want), "jobs")
			for i, e := range got {
				like := *want[i]
				like.Seq = e.Seq
				if like.State == pawl.Leased {
					like.State, like.LeasedSince = pawl.Ready, time.Time{}
				}
				f.same(e, &like, "a restored job")
			}
			f.countsAre("a", pawl.Counts{Ready: 2, Delayed: 1, Dead: 1, Completed: 1}, "the restore")
			equal(f, len(f.fetch(9, "a")), 2, "jobs to fetch")
			f.is(f.try(&pawl.Envelope{Kind: "a", Queue: "a", UniqueKey: "u-ready", OnConflict: pawl.Reject}), pawl.ErrConflict, "its unique key")
		}),
	newTest("leaves its arguments unchanged",
		"A restore leaves its arguments unchanged. What they leave open, and the sequence, it fills in for the jobs that "+
			"it stores.", func(f *fixture) {
			f.restorer()
			past := time.Now().Add(-time.Hour)
			f.restore([]*pawl.Envelope{
				{Kind: "open", State: pawl.Ready},
				{Kind: "due", State: pawl.Delayed, NotBefore: past, Delay: time.Hour, OnConflict: pawl.Replace, Seq: 1 << 40},
				{Kind: "leased", State: pawl.Leased, LeasedSince: past, NotBefore: time.Now().Add(time.Hour)},
				{Kind: "cancelled", State: pawl.Leased, Cancelled: true, BackoffSince: past},
				{Kind: "late", State: pawl.Delayed, Deadline: past, Payload: make([]byte, 2000)},
				{Kind: "dead", State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonPoison, At: past}, Cancelled: true},
			})
			for _, e := range f.list(pawl.Filter{}) {
				equal(f, e.ID.IsZero(), false, "the ID of the job "+e.Kind+" is zero")
				equal(f, e.Seq > 0 && e.Seq < 1<<40, true, "it has a sequence of the queue")
				equal(f, e.Queue+", "+e.Origin, pawl.DefaultQueue+", "+pawl.DefaultQueue, "queue and origin")
				f.sameTime(e.Created, time.Now(), "created")
				equal(f, e.NotBefore.IsZero(), false, "not before is zero")
			}
		}),
	newTest("in their order", "Restored jobs get sequences in the order of the call, behind those of the queue.", func(f *fixture) {
		f.restorer()
		last := f.must(f.add().ID).Seq
		jobs := newBatch(5, func(e *pawl.Envelope) { e.ID, e.State = pawl.NewID(time.Now()), pawl.Ready })
		f.restore(jobs)
		for _, e := range jobs {
			seq := f.must(e.ID).Seq
			equal(f, seq > last, true, "the sequence grows")
			last = seq
		}
	}),
	newTest("what time did",
		"A restored job whose time has come is ready, one past its deadline is dead, and one that was cancelled while it "+
			"was leased is dead.", func(f *fixture) {
			f.restorer()
			due, late, ended := pawl.NewID(time.Now()), pawl.NewID(time.Now()), pawl.NewID(time.Now())
			now := time.Now()
			f.restore([]*pawl.Envelope{
				{ID: due, Kind: "k", State: pawl.Delayed, NotBefore: now.Add(-time.Second)},
				{ID: late, Kind: "k", State: pawl.Ready, Deadline: now.Add(-time.Second)},
				{ID: ended, Kind: "k", State: pawl.Leased, Cancelled: true},
			})
			equal(f, f.must(due).State, pawl.Ready, "state of the job that is due")
			for id, reason := range map[pawl.ID]pawl.Reason{late: pawl.ReasonDeadline, ended: pawl.ReasonCancelled} {
				e := f.must(id)
				equal(f, e.State, pawl.Dead, "state")
				equal(f, e.Death.Reason, reason, "reason")
			}
		}),
	newTest("all or nothing", "A restore with one job that cannot be stored stores nothing: neither jobs nor effects.", func(f *fixture) {
		q := f.restorer()
		taken := f.add(unique("u"))
		unchanged := f.unchanged()
		for want, bad := range map[error]*pawl.Envelope{
			pawl.ErrConflict:        {ID: taken.ID, Kind: "k", State: pawl.Ready},
			pawl.ErrInvalid:         {Kind: "k", State: "sleeping"},
			pawl.ErrPayloadTooLarge: {Kind: "k", State: pawl.Ready, Payload: make([]byte, 2<<20)},
		} {
			jobs := []*pawl.Envelope{{ID: pawl.NewID(time.Now()), Kind: "k", State: pawl.Ready}, bad}
			f.is(q.Restore(f.Context(), jobs, []driver.Effect{{Kind: "k", Key: "e", Until: time.Now().Add(time.Hour)}}), want, "restore")
			unchanged("after the refusal")
		}
		key := &pawl.Envelope{Kind: taken.Kind, Queue: taken.Queue, UniqueKey: "u", State: pawl.Ready}
		f.is(q.Restore(f.Context(), []*pawl.Envelope{key}, nil), pawl.ErrConflict, "a unique key that is taken")
		unchanged("after the refusal")
		equal(f, len(f.effects(9)), 0, "effects")
		f.is(q.Restore(f.Context(), newBatch(pawl.MaxBatchJobs+1), nil), pawl.ErrBatchTooLarge, "too many jobs")
		f.is(q.Restore(f.Context(), nil, []driver.Effect{{Kind: "k"}}), pawl.ErrInvalid, "an effect without a key")
	}),
	newTest("effects",
		"The idempotency keys that count as done are listed in pages, and a restored one removes a job without an attempt until "+
			"its time. The later time counts.", func(f *fixture) {
			f.restorer()
			f.done("x", of("a"), ttl(time.Hour))
			f.done("y", of("a"), ttl(2*time.Hour))
			f.done("x", of("b"), ttl(3*time.Hour))
			want := f.effects(pawl.MaxListed)
			equal(f, len(want), 3, "effects")
			for _, size := range []int{1, 2} {
				for i, e := range f.effects(size) {
					equal(f, e, want[i], "effect")
				}
			}
			f.fresh(f.settings)
			f.restore(nil, want...)
			f.restore(nil, driver.Effect{Kind: "a", Key: "x", Until: time.Now().Add(time.Minute)})
			f.pass(time.Minute)
			f.skips(f.add(of("a"), effect("x")).ID, "before the later time")
			f.pass(time.Hour)
			e := f.add(of("a"), effect("x"))
			equal(f, f.lease().ID, e.ID, "the job that runs after it")
			f.skips(f.add(of("b"), effect("x")).ID, "of another kind")
		}),
	newTest("effects of leased jobs",
		"An effect that is restored while a job with it is leased stays done until the restored time, however the lease ends, or until the time of a success, if that is later.", func(f *fixture) {
			f.restorer()
			for _, end := range []struct {
				name string
				do   func(*pawl.Lease)
				ttl  time.Duration
			}{
				{"ack", f.ack, time.Minute},
				{"a longer ack", f.ack, 3 * time.Hour},
				{"release", f.release, time.Minute},
			} {
				id := f.add(effect(end.name), ttl(end.ttl)).ID
				l := f.lease()
				f.restore(nil, driver.Effect{Kind: "k", Key: end.name, Until: time.Now().Add(time.Hour)})
				until := time.Now().Add(max(time.Hour, end.ttl))
				end.do(l)
				f.sound("after " + end.name)
				if end.name == "release" {
					f.skips(id, "after the release")
				}
				f.pass(time.Until(until) - time.Second)
				f.skips(f.add(effect(end.name)).ID, "before the time, after "+end.name)
				f.pass(time.Second)
				next := f.add(effect(end.name))
				l = f.lease()
				equal(f, l.ID, next.ID, "the job that runs after the time, after "+end.name)
				f.ack(l)
			}
		}),
	newTest("effects, refused", "A list of no effect or of too many, or after a cursor of another list, gives ErrInvalid.", func(f *fixture) {
		q := f.restorer()
		for _, max := range []int{0, pawl.MaxListed + 1} {
			_, _, err := q.Effects(f.Context(), "", max)
			f.is(err, pawl.ErrInvalid, "effects")
		}
		_, _, err := q.Effects(f.Context(), "x", 1)
		f.is(err, pawl.ErrInvalid, "effects after a cursor of no list")
	}),
	newTest("too late",
		"A restore whose context has ended returns ErrNotAccepted and stores nothing. After Close, a restore and a list of "+
			"effects return ErrClosed.", func(f *fixture) {
			q := f.restorer()
			ctx := f.ended()
			jobs := []*pawl.Envelope{{Kind: "k", State: pawl.Ready}}
			f.is(q.Restore(ctx, jobs, nil), pawl.ErrNotAccepted, "restore")
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs")
			f.closed()
			f.is(q.Restore(f.Context(), jobs, nil), pawl.ErrClosed, "restore")
			_, _, err := q.Effects(f.Context(), "", 1)
			f.is(err, pawl.ErrClosed, "effects")
		}),
	restartTest("after a restart", "Restored jobs and effects are durable.", func(f *fixture) {
		f.restorer()
		dead := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k", State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonPermanent, At: time.Now()}}
		f.restore([]*pawl.Envelope{dead}, driver.Effect{Kind: "k", Key: "x", Until: time.Now().Add(time.Hour)})
		f.restart()
		equal(f, f.must(dead.ID).State, pawl.Dead, "state")
		f.skips(f.add(of("k"), effect("x")).ID, "after the restart")
	}),
}

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
