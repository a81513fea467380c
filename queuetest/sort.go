package queuetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

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
