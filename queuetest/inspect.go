package queuetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

var inspectTests = []test{
	newTest("by state, queue and kind",
		"A filter chooses the jobs that match all its fields. The zero filter chooses all jobs.", func(f *fixture) {
			queues, kinds := []string{"q1", "q2"}, []string{"k1", "k2"}
			for _, state := range []pawl.State{pawl.Leased, pawl.Dead, pawl.Delayed, pawl.Ready} {
				for _, queue := range queues {
					for _, kind := range kinds {
						f.held(state, on(queue), of(kind), header("state", string(state)))
					}
				}
			}
			equal(f, len(f.list(pawl.Filter{})), 16, "jobs in all")
			for _, state := range append(states, "") {
				for _, queue := range append(queues, "", "q3") {
					for _, kind := range append(kinds, "", "k3") {
						filter := pawl.Filter{State: state, Queue: queue, Kind: kind}
						want := 0
						for _, e := range f.list(pawl.Filter{}) {
							if fits(e, filter) {
								want++
							}
						}
						got := f.list(filter)
						equal(f, len(got), want, "jobs")
						for _, e := range got {
							equal(f, fits(e, filter), true, "the job fits the filter")
							equal(f, string(e.State), e.Headers["state"], "state")
							f.same(e, f.must(e.ID), "the job in the list")
						}
					}
				}
			}
		}),
	newTest("an unknown state", "A filter with an unknown state is refused: the list yields nil with the error and ends.", func(f *fixture) {
		f.add()
		seen := 0
		for e, err := range f.inspector().Jobs(f.Context(), pawl.Filter{State: "sleeping"}) {
			equal(f, e, nil, "envelope")
			f.invalid(err, "list")
			seen++
		}
		equal(f, seen, 1, "steps of the list")
	}),
	newTest("order",
		"A list of all jobs is in the order of creation. Ready jobs come in the order of fetching, delayed jobs by their "+
			"times, and dead jobs by their deaths.", func(f *fixture) {
			for i, p := range []int8{0, 5, -5, 0, 5} {
				f.add(of(string(rune('a'+i))), priority(p))
				f.pass(time.Second)
			}
			for i, delay := range []time.Duration{3, 1, 2} {
				f.add(of(string(rune('x'+i))), after(delay*time.Hour))
				f.pass(time.Second)
			}
			equal(f, kindsOf(f.list(pawl.Filter{})), "abcdexyz", "all")
			equal(f, kindsOf(f.list(pawl.Filter{State: pawl.Ready})), "beadc", "ready")
			equal(f, kindsOf(f.list(pawl.Filter{State: pawl.Delayed})), "yzx", "delayed")
			for _, l := range f.leases(5) {
				f.pass(time.Second)
				f.abandon(l)
			}
			equal(f, kindsOf(f.list(pawl.Filter{State: pawl.Dead})), "beadc", "dead")
		}),
	newTest("many jobs", "A list has each job once, however many there are. A reader may read it again or stop early.", func(f *fixture) {
		batch := newBatch(300)
		for i, e := range batch {
			e.Payload = []byte(strings.Repeat("p", i*20))
		}
		f.enqueue(batch...)
		for _, state := range []pawl.State{"", pawl.Ready} {
			f.sameJobs(idsOf(f.list(pawl.Filter{State: state})), idsOf(batch), "jobs")
		}
		jobs := f.inspector().Jobs(f.Context(), pawl.Filter{})
		for range 2 {
			n := 0
			for range jobs {
				if n++; n == 250 {
					break
				}
			}
			equal(f, n, 250, "jobs before the break")
		}
	}),
	newTest("changes while a list is read",
		"A list blocks no other call: the loop may use the queue. The list has each unchanged job once.", func(f *fixture) {
			batch := newBatch(300)
			for i, e := range batch {
				e.Queue = []string{"touched", "untouched"}[i%2]
			}
			f.enqueue(batch...)
			seen := 0
			for e, err := range f.inspector().Jobs(f.Context(), pawl.Filter{}) {
				f.ok(err, "list")
				if e.Queue == "untouched" {
					if seen++; seen%50 == 1 {
						f.ack(f.leases(1, "touched")[0])
						f.add()
					}
				}
			}
			equal(f, seen, 150, "jobs that nobody touched")
		}),
	newTest("no such job", "A job that never existed, or that is done, gives ErrNotFound.", func(f *fixture) {
		_, err := f.inspector().Job(f.Context(), pawl.NewID(time.Now()))
		f.is(err, pawl.ErrNotFound, "a job that never was")
		id := f.add().ID
		f.ack(f.lease())
		_, err = f.inspector().Job(f.Context(), id)
		f.is(err, pawl.ErrNotFound, "a job that is done")
	}),
	newTest("a context that ends", "A long list ends early when its context ends, with nil and the error.", func(f *fixture) {
		f.enqueue(newBatch(300)...)
		ctx, cancel := context.WithCancel(f.Context())
		defer cancel()
		seen, failed := 0, 0
		for e, err := range f.inspector().Jobs(ctx, pawl.Filter{}) {
			if cancel(); err == nil {
				seen++
				continue
			}
			equal(f, e, nil, "envelope")
			f.is(err, context.Canceled, "Jobs")
			failed++
		}
		equal(f, failed, 1, "errors")
		equal(f, seen < 300, true, "the list ends early")
	}),
	newTest("a context that has ended", "Inspection ends with its context. A list then yields nil and the error.", func(f *fixture) {
		e := f.add()
		ctx := f.ended()
		_, err := f.inspector().Job(ctx, e.ID)
		f.is(err, context.Canceled, "Job")
		seen := 0
		for e, err := range f.inspector().Jobs(ctx, pawl.Filter{}) {
			equal(f, e, nil, "envelope")
			f.is(err, context.Canceled, "Jobs")
			seen++
		}
		equal(f, seen, 1, "steps of the list")
	}),
}

func fits(e *pawl.Envelope, filter pawl.Filter) bool {
	return (filter.State == "" || filter.State == e.State) &&
		(filter.Queue == "" || filter.Queue == e.Queue) &&
		(filter.Kind == "" || filter.Kind == e.Kind)
}

func reversed(ids []pawl.ID) []pawl.ID {
	ids = slices.Clone(ids)
	slices.Reverse(ids)
	return ids
}

// sortTests cover the orders of a list.
func sortTests() []test {
	return []test{
		newTest("by death",
			"The order of death lists the dead jobs of all queues by the time of death, within the given bounds, and the "+
				"newest first on request.", func(f *fixture) {
				var ids []pawl.ID
				var died []time.Time
				for i := range 6 {
					e := f.add(on([]string{"b", "a", "c"}[i%3]))
					f.pass(time.Second)
					f.abandon(f.lease(e.Queue))
					ids, died = append(ids, e.ID), append(died, time.Now())
				}
				f.held(pawl.Ready)
				list := func(filter pawl.Filter) []pawl.ID {
					filter.State = pawl.Dead
					return idsOf(f.list(filter))
				}
				pick := func(numbers ...int) (picked []pawl.ID) {
					for _, n := range numbers {
						picked = append(picked, ids[n])
					}
					return picked
				}
				died1to4 := pawl.Filter{DiedSince: died[1], DiedBefore: died[4]}
				for _, c := range []struct {
					filter pawl.Filter
					want   []pawl.ID
				}{
					{pawl.Filter{}, pick(0, 3, 1, 4, 2, 5)},
					{pawl.Filter{Newest: true}, pick(5, 2, 4, 1, 3, 0)},
					{pawl.Filter{Order: pawl.OrderDied}, pick(0, 1, 2, 3, 4, 5)},
					{pawl.Filter{Order: pawl.OrderDied, Newest: true}, pick(5, 4, 3, 2, 1, 0)},
					{pawl.Filter{Order: pawl.OrderDied, Newest: true, Queue: "a"}, pick(4, 1)},
					{pawl.Filter{DiedSince: died1to4.DiedSince, DiedBefore: died1to4.DiedBefore}, pick(3, 1, 2)},
					{pawl.Filter{DiedSince: died[2], Order: pawl.OrderDied}, pick(2, 3, 4, 5)},
					{pawl.Filter{DiedBefore: died[2], Order: pawl.OrderDied, Newest: true}, pick(1, 0)},
					{pawl.Filter{DiedSince: died[2], Queue: "c"}, pick(2, 5)},
					{pawl.Filter{DiedSince: died[2], Queue: "none"}, nil},
				} {
					f.sameJobs(list(c.filter), c.want, fmt.Sprintf("%+v", c.filter))
				}
			}),
		newTest("by creation",
			"The order of creation lists jobs in every state by their creation, and the newest first on request.", func(f *fixture) {
				var all, dead []pawl.ID
				for i, state := range []pawl.State{pawl.Dead, pawl.Ready, pawl.Dead, pawl.Delayed, pawl.Dead} {
					id := f.held(state, on([]string{"b", "a"}[i%2]), priority(int8(i)))
					all = append(all, id)
					if state == pawl.Dead {
						dead = append(dead, id)
					}
					f.pass(time.Second)
				}
				f.sameJobs(idsOf(f.list(pawl.Filter{Order: pawl.OrderCreated})), all, "all")
				f.sameJobs(idsOf(f.list(pawl.Filter{Newest: true})), reversed(all), "all, newest first")
				f.sameJobs(idsOf(f.list(pawl.Filter{Order: pawl.OrderCreated, State: pawl.Dead})), dead, "dead")
				f.sameJobs(idsOf(f.list(pawl.Filter{Order: pawl.OrderCreated, State: pawl.Dead, Newest: true})), reversed(dead), "dead, newest first")
			}),
		newTest("newest of a state", "A list of one state with the newest first is the list of that state in reverse.", func(f *fixture) {
			for _, state := range states {
				for range 3 {
					f.held(state)
					f.pass(time.Millisecond)
				}
				f.sameJobs(idsOf(f.list(pawl.Filter{State: state, Newest: true})), reversed(idsOf(f.list(pawl.Filter{State: state}))), string(state))
				f.fresh(f.settings)
			}
		}),
		newTest("an unknown order",
			"An unknown order gives ErrInvalid, and so does the order of death for jobs that are not dead.", func(f *fixture) {
				for _, filter := range []pawl.Filter{{Order: "size"}, {Order: pawl.OrderDied}, {Order: pawl.OrderDied, State: pawl.Ready}} {
					for _, err := range f.inspector().Jobs(f.Context(), filter) {
						f.is(err, pawl.ErrInvalid, "list")
					}
				}
			}),
	}
}
