package queuetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// fetchKinds leases up to n jobs of some kinds from the default queue, without waiting.
func (f *fixture) fetchKinds(n int, kinds ...string) []*pawl.Lease {
	f.Helper()
	f.catchUp()
	leases, err := f.q.Fetch(f.Context(), pawl.Request{Kinds: kinds, Max: n, Wait: pawl.WaitNot})
	if len(leases) == 0 {
		f.is(err, pawl.ErrEmpty, "fetch of "+strings.Join(kinds, ", "))
	}
	return leases
}

var kindTests = []test{
	newTest("two fetchers",
		"A fetch returns jobs of the kinds that it names. Two fetchers of one queue with different kinds never take each "+
			"other's jobs.", func(f *fixture) {
			for range 100 {
				f.addKinds("a", "b")
			}
			for range 10 {
				equal(f, kinds(f.fetchKinds(10, "a")), strings.Repeat("a", 10), "jobs of the first")
				equal(f, kinds(f.fetchKinds(10, "b")), strings.Repeat("b", 10), "jobs of the second")
			}
			equal(f, len(f.fetch(1)), 0, "jobs left")
		}),
	newTest("a kind that nobody names", "A job of another kind stays ready in its place and counts as ready.", func(f *fixture) {
		id := f.add(of("other")).ID
		f.addKinds("k")
		f.ack(f.fetchKinds(9, "k", "never seen")[0])
		equal(f, len(f.fetchKinds(9, "k", "never seen")), 0, "jobs")
		f.pass(f.long())
		equal(f, f.must(id).State, pawl.Ready, "state")
		f.countsAre(pawl.DefaultQueue, pawl.Counts{Ready: 1}, "then")
		equal(f, kinds(f.fetch(9)), "other", "jobs of a fetch that names no kind")
	}),
	newTest("one order",
		"A fetch of several kinds returns their jobs in one order: by priority, by the time since when they are ready, and "+
			"by sequence.", func(f *fixture) {
			for _, kind := range []string{"c", "a", "x", "b"} {
				f.add(of(kind))
				f.pass(time.Second)
			}
			f.add(of("b"), priority(1))
			f.add(of("x"), priority(2))
			f.add(of("a"), priority(1))
			f.comeAs(f.fetchKinds(9, "a", "b", "c"), "bacab", "jobs")
			equal(f, kinds(f.fetch(9)), "xx", "jobs of the kind that was not asked for")
		}),
	newTest("the retry share", "The retry share applies to the queue, over all kinds that the fetch names.", func(f *fixture) {
		for range 4 {
			f.addKinds("r", "s")
		}
		for _, l := range f.leases(8) {
			f.nack(l, 0)
		}
		for range 8 {
			f.addKinds("a", "b", "x")
		}
		leases, err := f.q.Fetch(f.Context(), pawl.Request{Kinds: []string{"a", "b", "r", "s"}, Max: 10, RetryShare: 0.2})
		f.ok(err, "fetch")
		retries := 0
		for _, l := range leases {
			retries += min(l.Attempts, 1)
		}
		equal(f, len(leases), 10, "jobs")
		equal(f, retries, 2, "retries")
	}),
	newTest("jobs that crashed", "One repeat suspect is leased at a time, whatever its kind.", func(f *fixture) {
		f.addKinds("a", "b")
		for range 2 {
			f.leases(2)
			f.pass(time.Hour)
		}
		f.lease()
		equal(f, len(f.fetchKinds(9, "b")), 0, "jobs beside one that crashed as often")
	}).needing(suspecting),
	newTest("turns", "A queue without a job of the named kinds gets no turn.", func(f *fixture) {
		for range 3 {
			f.add(on("a"), of("a"))
			f.add(on("b"), of("x"))
			f.add(on("c"), of("c"))
		}
		leases, err := f.q.Fetch(f.Context(), pawl.Request{Queues: []string{"a", "b", "c"}, Kinds: []string{"a", "c"}, Max: 9})
		f.ok(err, "fetch")
		equal(f, kinds(leases), "acacac", "jobs")
	}),
	newTest("an idempotency key",
		"A job whose key is done is removed by a fetch of its kind only.", func(f *fixture) {
			once := func(e *pawl.Envelope) { e.Kind, e.IdempotencyKey = "k", "key" }
			f.add(once)
			f.ack(f.lease())
			id := f.add(once).ID
			equal(f, len(f.fetchKinds(9, "other")), 0, "jobs of another kind")
			equal(f, f.must(id).State, pawl.Ready, "state")
			equal(f, len(f.fetchKinds(9, "k")), 0, "jobs")
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs after that")
		}),
	newTest("a fetch that waits", "A waiting fetch gets a job of a kind that it names, and no other job.", func(f *fixture) {
		leases, call := f.fetching(f.Context(), pawl.Request{Kinds: []string{"k", "l"}, Max: 9})
		f.addKinds("other")
		f.waits(call, "beside a job of another kind")
		f.addKinds("l")
		f.ends(call, nil, "fetch")
		equal(f, kinds(*leases), "l", "jobs")
	}),
	newTest("the end of the work", "A drain does not wait for jobs of other kinds, whatever their state.", func(f *fixture) {
		for _, wait := range []pawl.Wait{pawl.WaitDrained, pawl.WaitFinished} {
			f.fresh(Settings{})
			f.add(of("other"))
			f.lease()
			f.add(of("other"))
			f.add(of("other"), after(time.Hour))
			request := pawl.Request{Kinds: []string{"k", "never seen"}, Max: 1, Wait: wait}
			_, call := f.fetching(f.Context(), request)
			f.ends(call, pawl.ErrEmpty, "fetch of a kind without a job")
			f.add(of("k"))
			l := f.fetchKinds(1, "k")[0]
			_, call = f.fetching(f.Context(), request)
			f.waits(call, "while a job of the kind is leased")
			f.ack(l)
			f.ends(call, pawl.ErrEmpty, "fetch")
			f.add(of("k"), after(time.Hour))
			_, call = f.fetching(f.Context(), request)
			if wait == pawl.WaitDrained {
				f.ends(call, pawl.ErrEmpty, "fetch beside a delayed job of the kind")
			} else {
				f.waits(call, "while a job of the kind is delayed")
			}
		}
	}),
	newTest("many kinds", "The order is the same however many kinds exist and however many the fetch names.", func(f *fixture) {
		const n = 300
		var asked []string
		var batch []*pawl.Envelope
		want := ""
		for i := range 2 * n {
			kind := fmt.Sprintf("%03d.", i*7%n)
			batch = append(batch, &pawl.Envelope{Kind: kind})
			if i < n && i%2 == 0 {
				asked = append(asked, kind)
			}
		}
		f.enqueue(batch...)
		for _, e := range batch {
			for _, kind := range asked {
				if e.Kind == kind {
					want += kind
				}
			}
		}
		f.comeAs(f.fetchKinds(2*n, asked...), want, "jobs")
		equal(f, len(f.fetch(2*n)), n, "jobs left")
	}),
	restartTest("after a restart", "Fetches by kind return, and wait for, the same jobs after a restart.", func(f *fixture) {
		f.addKinds("a", "b", "a")
		f.add(of("c"), after(time.Hour))
		f.restart()
		equal(f, kinds(f.fetchKinds(9, "a")), "aa", "jobs")
		_, call := f.fetching(f.Context(), pawl.Request{Kinds: []string{"c"}, Max: 1, Wait: pawl.WaitFinished})
		f.waits(call, "while a job of the kind is delayed")
		_, call = f.fetching(f.Context(), pawl.Request{Kinds: []string{"d"}, Max: 1, Wait: pawl.WaitFinished})
		f.ends(call, pawl.ErrEmpty, "fetch of a kind without a job")
	}),
	newTest("refused", "A fetch with an empty but non-nil list of kinds, or with an invalid kind, is refused.", func(f *fixture) {
		for _, kinds := range [][]string{{}, {""}, {"k", "\x00"}, {strings.Repeat("k", pawl.MaxNameBytes+1)}} {
			_, err := f.q.Fetch(f.Context(), pawl.Request{Kinds: kinds, Max: 1, Wait: pawl.WaitNot})
			f.is(err, pawl.ErrInvalid, fmt.Sprintf("fetch of %q", kinds))
		}
	}),
}
