package queuetest

import (
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

var leaseTests = []test{
	newTest("ends after its length",
		"A lease lasts as long as the setting says, not a nanosecond less. Then the queue reaps it by itself.", func(f *fixture) {
			id := f.add().ID
			l := f.lease()
			equal(f, l.Length, 10*time.Second, "length")
			f.sameTime(l.Expires, time.Now().Add(10*time.Second), "expiry")
			f.pass(10*time.Second - 1)
			equal(f, f.must(id).State, pawl.Leased, "state before the expiry")
			f.pass(1)
			equal(f, f.must(id).State, pawl.Ready, "state at the expiry")
		}).with(Settings{Lease: 10 * time.Second}),
	newTest("an expired job goes to a fetch that waits",
		"The queue reaps expired leases by itself and grants their jobs again.", func(f *fixture) {
			id := f.add().ID
			l := f.lease()
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
			f.waits(call, "while the lease lasts")
			f.await(call)
			f.sameTime(time.Now(), l.Expires, "the time of the fetch")
			equal(f, (*leases)[0].ID, id, "job")
			equal(f, (*leases)[0].Crashes, 1, "crashes")
		}),
	newTest("extend renews",
		"Extend renews a lease for its full length from now, and does not change the Lease value.", func(f *fixture) {
			id := f.add().ID
			l := f.lease()
			expires := l.Expires
			for range 5 {
				f.pass(20 * time.Second)
				equal(f, len(f.extend(l)), 0, "leases lost")
				f.sameTime(l.Expires, expires, "the expiry in the caller's value")
			}
			f.pass(l.Length - 1)
			equal(f, f.must(id).State, pawl.Leased, "state before the expiry")
			f.pass(1)
			equal(f, f.must(id).State, pawl.Ready, "state at the expiry")
			equal(f, f.must(id).Crashes, 1, "crashes")
		}),
	newTest("extend returns the lost leases", "Extend renews the leases that still hold and returns those that are lost.", func(f *fixture) {
		ids := f.addKinds("a", "b", "c", "d")
		leases := f.leases(4)
		f.ack(leases[1])
		forged := &pawl.Lease{Envelope: leases[2].Envelope, Token: leases[2].Token + 1}
		f.pass(20 * time.Second)
		lost := f.extend(leases[1], leases[0], forged, leases[3])
		if !slices.Equal(lost, []*pawl.Lease{leases[1], forged}) {
			f.Fatalf("lost: %v, want the acked and the forged lease", lost)
		}
		f.pass(10 * time.Second)
		equal(f, f.must(ids[0]).State, pawl.Leased, "state of a job whose lease was extended")
		equal(f, f.must(ids[2]).State, pawl.Ready, "state of a job whose token was forged")
		equal(f, f.must(ids[3]).State, pawl.Leased, "state of a job whose lease was extended")
		equal(f, len(f.extend()), 0, "leases lost of none")
	}),
	newTest("an extended lease still settles", "Extend keeps the token.", func(f *fixture) {
		f.add()
		l := f.lease()
		f.pass(20 * time.Second)
		f.extend(l)
		f.pass(20 * time.Second)
		f.ack(l)
	}),
	newTest("each at its own time",
		"Leases expire one by one. An extended lease expires later than the leases that were granted before it.", func(f *fixture) {
			ids := f.addKinds("a", "b", "c")
			first := f.leases(1)[0]
			f.pass(time.Second)
			f.leases(1)
			f.pass(time.Second)
			f.extend(first)
			f.pass(time.Second)
			f.leases(1)
			f.pass(28 * time.Second)
			for i, state := range []pawl.State{pawl.Leased, pawl.Ready, pawl.Leased} {
				equal(f, f.must(ids[i]).State, state, "state after 31 s of the job "+[]string{"a", "b", "c"}[i])
			}
			f.pass(time.Second)
			equal(f, f.must(ids[0]).State, pawl.Ready, "state of a after 32 s")
			equal(f, f.must(ids[2]).State, pawl.Leased, "state of c after 32 s")
		}),
	newTest("beside a delayed job", "A lease expires at its time, whatever else waits for a later time.", func(f *fixture) {
		f.add(after(time.Hour))
		id := f.add().ID
		l := f.lease()
		leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
		f.await(call)
		f.sameTime(time.Now(), l.Expires, "the time of the fetch")
		equal(f, (*leases)[0].ID, id, "job")
	}),
	newTest("reap takes back what has expired alone",
		"Reap takes back every expired lease, and no lease that still holds or was settled.", func(f *fixture) {
			f.addKinds("a", "b", "c")
			leases := f.leases(2)
			f.ack(leases[0])
			equal(f, f.reap(), 0, "leases reaped before the expiry")
			f.pass(time.Second)
			held := f.leases(1)[0]
			<-time.After(leases[1].Length - time.Second)
			if n := f.reap(); n > 1 { // the queue may have reaped it first
				f.Fatalf("%d leases were reaped, one had expired", n)
			}
			equal(f, f.must(leases[1].ID).State, pawl.Ready, "state of the expired one")
			equal(f, f.must(leases[1].ID).Crashes, 1, "crashes of the expired one")
			equal(f, f.must(held.ID).State, pawl.Leased, "state of the other")
			equal(f, f.reap(), 0, "leases reaped once more")
		}),
	newTest("many expire at once", "Every expired lease is taken back, however many there are.", func(f *fixture) {
		batch := newBatch(1200)
		f.ok(f.try(batch...), "enqueue")
		leases := f.leases(len(batch))
		f.expire(leases[0])
		f.leases(len(batch))
	}),
}
