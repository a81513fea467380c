package queuetest

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

func deadTests() (tests []test) {
	for _, keep := range []bool{false, true} {
		tests = append(tests,
			newTest(fmt.Sprintf("retry, attempts kept: %v", keep),
				"Retry makes a dead job ready since now. Its attempts start at 0 unless they are kept, and nothing else "+
					"changes.", func(f *fixture) {
					id := f.add(priority(7)).ID
					f.nack(f.lease(), 0)
					f.abandon(f.lease())
					want := f.must(id)
					equal(f, want.Attempts, 2, "attempts")
					f.pass(time.Hour)
					f.retry(id, keep)
					want.State, want.Death, want.NotBefore = pawl.Ready, nil, time.Now()
					if !keep {
						want.Attempts = 0
					}
					f.same(f.must(id), want, "the job")
					l := f.lease()
					equal(f, l.Attempts, want.Attempts, "attempts of the next run")
				}),
		)
	}
	for _, state := range states[:len(states)-1] {
		tests = append(tests, retrying.wrongState("retry of a job that is ", "Retry accepts dead jobs only. Any other job "+
			"gives ErrConflict and stays unchanged.", state))
	}
	return append(tests, retrying.unknownJob("retry of no job"),
		newTest("stays dead", "A dead job stays dead until someone retries it. No fetch and no passing of time makes it "+
			"ready.", func(f *fixture) {
			id := f.held(pawl.Dead)
			f.pass(1000 * time.Hour)
			f.reap()
			equal(f, len(f.fetch(9)), 0, "jobs to fetch")
			equal(f, f.must(id).State, pawl.Dead, "state")
		}),
		newTest("becomes dead again", "A dead job that is retried may become dead again, for another reason.", func(f *fixture) {
			id := f.held(pawl.Dead)
			f.retry(id, false)
			f.pass(time.Second)
			f.ok(f.q.Settle(f.Context(), f.lease().Abandon(pawl.ReasonPermanent, errBoom)), "abandon")
			e := f.must(id)
			equal(f, e.Death.Reason, pawl.ReasonPermanent, "reason")
			f.sameTime(e.Death.At, time.Now(), "time of death")
			equal(f, e.Attempts, 1, "attempts")
			equal(f, e.Failures, 2, "failures")
		}),
		newTest("retried on its queue", "A dead job that is retried is on the queue on which it became dead.", func(f *fixture) {
			id := f.held(pawl.Dead, on("q"))
			f.retry(id, false)
			equal(f, len(f.fetch(9)), 0, "jobs on the default queue")
			equal(f, f.lease("q").ID, id, "job")
		}),
	)
}
