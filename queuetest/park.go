package queuetest

import (
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

var parkTests = []test{{
	name: "set aside",
	rule: "A parked job is not fetched, whatever time passes, and is visible as parked.",
	run: func(f *fixture) {
		id := f.held(pawl.Parked)
		f.pass(1000 * time.Hour)
		equal(f, len(f.fetch(9)), 0, "jobs to fetch")
		equal(f, f.must(id).State, pawl.Parked, "state")
	},
}, {
	name: "unpark",
	rule: "Unpark makes the parked jobs of the kinds that it names ready, and returns how many there were.",
	run: func(f *fixture) {
		letters := []string{"a", "b", "c"}
		f.addKinds(append(letters, letters...)...)
		for _, l := range f.leases(6) {
			f.park(l)
		}
		equal(f, f.unpark("a", "c", "never seen"), 4, "jobs unparked")
		equal(f, kinds(f.fetch(9)), "acac", "jobs")
		equal(f, f.unpark("a", "c"), 0, "jobs unparked once more")
		equal(f, f.unpark("b"), 2, "jobs unparked")
		equal(f, kinds(f.fetch(9)), "bb", "jobs")
	},
}, {
	name: "no kind",
	rule: "Unpark moves the jobs of the kinds that it names: without a name none.",
	run: func(f *fixture) {
		f.held(pawl.Parked)
		equal(f, f.unpark(), 0, "jobs unparked")
	},
}, {
	name: "a kind that is named twice",
	rule: "Unpark returns how many jobs there were.",
	run: func(f *fixture) {
		f.held(pawl.Parked)
		equal(f, f.unpark("k", "k"), 1, "jobs unparked")
		f.lease()
	},
}, {
	name: "parked jobs alone",
	rule: "Unpark changes no job in another state.",
	run: func(f *fixture) {
		for _, state := range []pawl.State{pawl.Dead, pawl.Leased, pawl.Delayed, pawl.Ready} {
			f.held(state)
		}
		unchanged := f.unchanged()
		equal(f, f.unpark("k"), 0, "jobs unparked")
		unchanged("after the unpark")
	},
}, {
	name: "whole kinds",
	rule: "A kind is any bytes but NUL, and none is mistaken for another that it begins.",
	run: func(f *fixture) {
		names := []string{"m", "ma", "mail", "mail.send", "mail\xff", "\xff", strings.Repeat("m", 254), strings.Repeat("m", 255)}
		f.addKinds(append(names, names...)...)
		for _, l := range f.leases(2 * len(names)) {
			f.park(l)
		}
		for _, name := range names {
			equal(f, f.unpark(name), 2, "jobs unparked")
			equal(f, kinds(f.fetch(99)), name+name, "jobs")
		}
	},
}, {
	name: "all queues",
	rule: "Unpark moves the jobs of a kind whichever queue they are on, each on its own.",
	run: func(f *fixture) {
		for _, name := range []string{"a", "b"} {
			f.add(on(name), of("k"))
			f.park(f.lease(name))
		}
		equal(f, f.unpark("k"), 2, "jobs unparked")
		equal(f, f.lease("a").Queue, "a", "queue")
		equal(f, f.lease("b").Queue, "b", "queue")
	},
}, {
	name: "a fetch that waits",
	rule: "An unparked job goes to a fetch that waits.",
	run: func(f *fixture) {
		id := f.held(pawl.Parked)
		leases, call := f.fetching(f.Context(), pawl.Request{Max: 1})
		f.waits(call, "while the job is parked")
		f.unpark("k")
		f.ends(call, nil, "fetch")
		equal(f, (*leases)[0].ID, id, "job")
	},
}, {
	name: "many",
	rule: "Unpark moves all there are, however many.",
	run: func(f *fixture) {
		batch := newBatch(1100)
		f.ok(f.q.Enqueue(f.Context(), batch...), "enqueue")
		parked := make(chan error, len(batch))
		for _, l := range f.leases(len(batch)) { // at once, so that they may share a commit
			go func() { parked <- f.q.Park(f.Context(), l) }()
		}
		for range batch {
			f.ok(<-parked, "park")
		}
		equal(f, f.unpark("k"), len(batch), "jobs unparked")
		f.leases(len(batch))
	},
}}
