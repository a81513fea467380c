package queuetest

import (
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
		f.sameTime(l.Expires, time.Now().Add(l.Length), "expiry")
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
	}),
	newTest("a fetch that waits for other queues is passed over",
		"A waiting fetch gets jobs from its own queues and holds up no other fetch.", func(f *fixture) {
			_, other := f.fetching(f.Context(), pawl.Request{Queues: []string{"other"}, Max: 1})
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
			id := f.add().ID
			f.ends(call, nil, "fetch")
			equal(f, (*leases)[0].ID, id, "job")
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
		}),
}
