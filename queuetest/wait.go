package queuetest

import (
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

var waits = map[pawl.Wait]string{
	pawl.WaitForJob: "WaitForJob", pawl.WaitNot: "WaitNot", pawl.WaitDrained: "WaitDrained", pawl.WaitFinished: "WaitFinished",
}

// givesUp checks which kinds of waiting end at once in a queue that holds only
// something which a fetch cannot get.
func givesUp(holds string, setup func(*fixture), empty ...pawl.Wait) test {
	return newTest("with "+holds,
		"WaitNot returns at once, WaitDrained when no job is ready or leased, WaitFinished when no job is ready, leased, "+
			"or delayed, and WaitForJob never.", func(f *fixture) {
			for wait, name := range waits {
				f.fresh(Settings{})
				setup(f)
				_, call := f.fetching(f.Context(), pawl.Request{
					Queues: []string{pawl.DefaultQueue, "never seen"}, Max: 1, Ahead: 1, Wait: wait,
				})
				if slices.Contains(empty, wait) {
					f.ends(call, pawl.ErrEmpty, name)
				} else {
					f.waits(call, name)
				}
			}
		})
}

// lastJob settles the only job while a fetch waits for the end of all work.
func lastJob(wait pawl.Wait, v verb, empty bool) test {
	return newTest(waits[wait]+" and "+v.name,
		"A fetch that waits for the end of the work returns when the last job is settled, or gets the job if it becomes "+
			"ready again.", func(f *fixture) {
			id := f.add().ID
			l := f.lease()
			leases, call := f.fetching(f.Context(), pawl.Request{Max: 1, Wait: wait})
			f.waits(call, "while the last job runs")
			f.end(v, l)
			if empty {
				f.ends(call, pawl.ErrEmpty, "fetch")
				return
			}
			f.await(call)
			equal(f, (*leases)[0].ID, id, "job")
		})
}

func waitTests() []test {
	all := []pawl.Wait{pawl.WaitNot, pawl.WaitDrained, pawl.WaitFinished}
	tests := []test{
		givesUp("nothing", func(*fixture) {}, all...),
		givesUp("a leased job", func(f *fixture) { f.held(pawl.Leased) }, pawl.WaitNot),
		givesUp("a delayed job", func(f *fixture) { f.held(pawl.Delayed) }, pawl.WaitNot, pawl.WaitDrained),
		givesUp("a dead job", func(f *fixture) { f.held(pawl.Dead) }, all...),
		givesUp("a ready job of another queue", func(f *fixture) { f.add(on("other")) }, all...),
		givesUp("a delayed job of another queue", func(f *fixture) { f.add(on("other"), after(time.Hour)) }, all...),
		givesUp("a ready job that wants an idle slot", func(f *fixture) {
			f.add()
			f.expire(f.lease())
		}, pawl.WaitNot),
	}
	for _, v := range verbs {
		tests = append(tests,
			lastJob(pawl.WaitDrained, v, v.next != pawl.Ready),
			lastJob(pawl.WaitFinished, v, v.next != pawl.Ready && v.next != pawl.Delayed))
	}
	return append(append(tests, wakeTests()...),
		newTest("a job is there", "Whatever a fetch waits for, it returns at once when it finds a job.", func(f *fixture) {
			for wait, name := range waits {
				id := f.add().ID
				leases, call := f.fetching(f.Context(), pawl.Request{Max: 9, Ahead: 8, Wait: wait})
				f.ends(call, nil, name)
				equal(f, (*leases)[0].ID, id, "job")
				f.ack((*leases)[0])
			}
		}),
	)
}
