package queuetest

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
)

// Cases of the rates of a queue.

func rateTests() []test {
	three := pawl.Rate{Starts: 3, Per: time.Minute} // one each 20 s
	perKey, burst := pawl.Limits{RatePerKey: three}, pawl.Rate{Starts: 3, Per: time.Minute, Burst: 2}
	wait := pawl.Request{Max: 9}
	tests := []test{
		limitTest("by the rate of a queue", "A queue starts no more jobs than its rate allows, of any kind and key. A fetch that waits gets the next job when its time comes.",
			pawl.Limits{Rate: three}, func(f *fixture) {
				f.addKinds("a", "b", "c", "d", "e")
				began, order := time.Now(), ""
				for range 5 {
					leases, err := f.q.Fetch(f.patient(), wait)
					f.ok(err, "fetch")
					order += kinds(leases)
					f.ack(leases[0])
				}
				equal(f, order, "abcde", "order")
				equal(f, time.Since(began), 80*time.Second, "time of five starts")
			}),
		limitTest("by the rate of a key", "A key starts no more jobs than its rate allows. Other keys do not wait for it, nor jobs without a key.",
			perKey, func(f *fixture) {
				f.addKeys("aaabb")
				f.add()
				f.add()
				began := time.Now()
				leases := f.fetch(9)
				equal(f, keys(leases), "ab", "keys of a fetch of nine")
				equal(f, len(leases), 4, "jobs of it")
				f.acks(leases)
				equal(f, len(f.fetch(9)), 0, "jobs of another fetch")
				leases, err := f.q.Fetch(f.patient(), wait)
				f.ok(err, "fetch")
				equal(f, keys(leases), "ab", "keys of a fetch that waits")
				f.acks(leases)
				equal(f, time.Since(began), 20*time.Second, "time of the second start")
				leases, err = f.q.Fetch(f.patient(), wait)
				f.ok(err, "fetch")
				equal(f, keys(leases), "a", "keys of another")
				equal(f, time.Since(began), 40*time.Second, "time of the third start")
			}),
		limitTest("by a rate with a burst", "After a pause a burst of jobs starts at once.", pawl.Limits{Rate: burst, RatePerKey: burst}, func(f *fixture) {
			f.addKeys("aaaaaa")
			equal(f, len(f.fetch(9)), 2, "jobs at once")
			f.pass(29 * time.Second)
			equal(f, len(f.fetch(9)), 0, "jobs before the next has its time")
			f.pass(time.Second)
			equal(f, len(f.fetch(9)), 1, "jobs when it has")
			f.pass(time.Hour)
			equal(f, len(f.fetch(9)), 2, "jobs after a pause")
		}),
		limitTest("by a rate, however leases end", "A start counts however its lease ends: acked, failed, released, or expired. A retry is a start.",
			perKey, func(f *fixture) {
				id := f.addKeys("a")[0]
				for i := range 3 {
					l := f.lease()
					equal(f, l.ID, id, "job")
					if i < 2 {
						f.ok(f.q.Settle(f.Context(), []pawl.Settlement{l.Release(), l.Nack(0, errBoom)}[i]), "settle")
					} else {
						f.ack(l)
						f.addKeys("a")
					}
					equal(f, len(f.fetch(9)), 0, "jobs while the rate is used up")
					f.pass(20 * time.Second)
				}
				f.lease()
			}),
		limitTest("by a rate and by leases", "A job runs when both limits of its key allow it.",
			pawl.Limits{RunningPerKey: 1, RatePerKey: three}, func(f *fixture) {
				ids := f.addKeys("aaa")
				l := f.lease()
				f.pass(25 * time.Second)
				equal(f, len(f.fetch(9)), 0, "jobs while one runs")
				f.ack(l)
				l = f.lease()
				equal(f, l.ID, ids[1], "job that runs then")
				f.ack(l)
				equal(f, len(f.fetch(9)), 0, "jobs while the rate is used up")
				f.pass(20 * time.Second)
				equal(f, f.lease().ID, ids[2], "job that runs then")
			}),
		limitTest("by a rate, and priority", "A job that a rate blocked keeps its place behind jobs of a higher priority.", perKey, func(f *fixture) {
			ids := f.addKeys("aaa")
			f.acks(f.fetch(9))
			first := f.add(key("a"), priority(1)).ID
			f.pass(20 * time.Second)
			l := f.lease()
			equal(f, l.ID, first, "job")
			f.ack(l)
			f.pass(20 * time.Second)
			equal(f, f.lease().ID, ids[1], "next job")
		}),
		limitTest("by a rate are counted", "The jobs that the rate of their key keeps waiting are blocked.", perKey, func(f *fixture) {
			f.addKeys("aaab")
			equal(f, len(f.fetch(9)), 2, "jobs")
			equal(f, len(f.fetch(9)), 0, "jobs of another fetch")
			equal(f, f.blocked(pawl.DefaultQueue), 2, "blocked jobs")
			f.pass(20 * time.Second)
			equal(f, f.blocked(pawl.DefaultQueue), 1, "blocked jobs when one may start")
		}).needing(counting),
		limitTest("by a rate survive a restart", "A rate goes on over a restart, also for a key whose jobs have all ended.",
			pawl.Limits{Rate: pawl.Rate{Starts: 30, Per: time.Minute, Burst: 30}, RatePerKey: three}, func(f *fixture) {
				ids := f.addKeys("aab")
				for _, l := range f.leases(2) {
					f.ack(l)
				}
				f.restart()
				f.addKeys("b")
				equal(f, len(f.fetch(9)), 0, "jobs after the restart")
				f.pass(20 * time.Second)
				leases := f.leases(2)
				equal(f, leases[0].ID, ids[1], "job when its time has come")
				equal(f, keys(leases), "ab", "keys")
			}).needing(alone),
	}
	return append(tests, costTests()...)
}

// cost changes a job for add into one with a cost.
func cost(n int) func(*pawl.Envelope) { return func(e *pawl.Envelope) { e.Cost = n } }

func costTests() []test {
	rate := pawl.Rate{Starts: 6, Per: time.Minute, MaxCost: 3} // one each 15 s
	wait := pawl.Request{Max: 9}
	return []test{
		limitTest("by the rate of a queue, with costs",
			"A start counts as many starts as the cost of its job. A job starts as soon as one of cost 1 may, in its order.",
			pawl.Limits{Rate: rate}, func(f *fixture) {
				began, order := time.Now(), ""
				for i, n := range []int{3, 1, 2, 3, 0} {
					f.add(of(string(rune('a'+i))), cost(n))
				}
				for _, at := range []time.Duration{0, 45 * time.Second, time.Minute, 90 * time.Second, 135 * time.Second} {
					leases, err := f.q.Fetch(f.patient(), wait)
					f.ok(err, "fetch")
					order += kinds(leases)
					f.ack(leases[0])
					equal(f, time.Since(began), at, "time of the start of "+kinds(leases))
				}
				equal(f, order, "abcde", "order")
			}),
		limitTest("by the rate of a key, with costs", "The cost of a job counts for its key. Other keys do not wait for it.",
			pawl.Limits{RatePerKey: rate}, func(f *fixture) {
				f.add(key("a"), cost(3))
				f.addKeys("ab")
				began := time.Now()
				f.acks(f.leases(2))
				leases, err := f.q.Fetch(f.patient(), wait)
				f.ok(err, "fetch")
				equal(f, keys(leases), "a", "key of the next")
				equal(f, time.Since(began), 45*time.Second, "time of its start")
			}),
		limitTest("by a rate with a burst, with costs", "A burst is used up by costs, in one fetch and over several.",
			pawl.Limits{Rate: pawl.Rate{Starts: 10, Per: time.Minute, Burst: 3, MaxCost: 3}}, func(f *fixture) { // one each 10 s
				for _, n := range []int{2, 3, 1, 1} {
					f.add(cost(n))
				}
				leases := f.fetch(9)
				equal(f, len(leases), 2, "jobs at once")
				f.acks(leases)
				f.pass(29 * time.Second)
				equal(f, len(f.fetch(9)), 0, "jobs before the next has its time")
				f.pass(time.Second)
				f.ack(f.lease())
				f.pass(9 * time.Second)
				equal(f, len(f.fetch(9)), 0, "jobs before the last has its time")
				f.pass(time.Second)
				equal(f, len(f.fetch(9)), 1, "jobs of the last fetch")
			}),
		limitTest("by a rate with many costs", "Jobs whose costs leave no room are blocked behind those that start, and start later, in order.",
			pawl.Limits{RatePerKey: pawl.Rate{Starts: 20, Per: time.Minute, Burst: 9, MaxCost: 5}}, func(f *fixture) { // one each 7.5 s
				jobs := newBatch(12, key("a"), cost(5))
				f.enqueue(jobs...)
				leases := f.fetch(9)
				equal(f, len(leases), 2, "jobs at once")
				f.acks(leases)
				equal(f, len(f.fetch(9)), 0, "jobs of another fetch")
				for i := 2; i < len(jobs); i++ {
					leases, err := f.q.Fetch(f.patient(), wait)
					f.ok(err, "fetch")
					equal(f, len(leases), 1, "jobs of a fetch that waits")
					equal(f, leases[0].ID, jobs[i].ID, "job")
					f.ack(leases[0])
				}
			}),
		limitTest("by a rate, with costs, and stories", "A cost stays with its job over a retry, a death, and a retry of the dead job.",
			pawl.Limits{RatePerKey: rate}, func(f *fixture) {
				id := f.add(key("a"), cost(3)).ID
				f.nack(f.lease(), 0)
				equal(f, f.must(id).Cost, 3, "cost after a retry")
				equal(f, len(f.fetch(9)), 0, "jobs while the rate is used up")
				f.pass(45 * time.Second)
				f.abandon(f.lease())
				equal(f, f.must(id).Cost, 3, "cost of the dead job")
				f.retry(id, false)
				f.pass(44 * time.Second)
				equal(f, len(f.fetch(9)), 0, "jobs")
				f.pass(time.Second)
				equal(f, f.lease().Cost, 3, "cost in the lease")
			}),
		limitTest("by a rate, with costs, survive a restart", "Costs of jobs and of their starts are there after a restart, and so is the highest cost of a rate.",
			pawl.Limits{RatePerKey: rate}, func(f *fixture) {
				f.add(key("a"), cost(3))
				f.add(key("a"), cost(2))
				f.ack(f.lease())
				f.settings.Limits = nil
				f.restart()
				f.pass(44 * time.Second)
				equal(f, len(f.fetch(9)), 0, "jobs")
				f.pass(time.Second)
				equal(f, f.lease().Cost, 2, "cost in the lease")
				f.invalid(f.try(&pawl.Envelope{Kind: "k", Key: "a", Cost: 4}), "a job of cost 4")
			}).needing(alone),
		limitTest("by a rate refuse a cost", "A queue refuses a batch with a job that costs more than a rate of the job allows.",
			pawl.Limits{Rate: rate, RatePerKey: pawl.Rate{Starts: 6, Per: time.Minute}}, func(f *fixture) {
				unchanged := f.unchanged()
				for _, e := range []*pawl.Envelope{{Kind: "k", Cost: 4}, {Kind: "k", Key: "a", Cost: 2}, {Kind: "k", Cost: -1}, {Kind: "k", Cost: pawl.MaxCost + 1}} {
					f.invalid(f.try(&pawl.Envelope{Kind: "k"}, e), fmt.Sprintf("a job of cost %d", e.Cost))
				}
				unchanged("after the refusals")
				f.add(cost(3))
				f.add(key("a"), cost(1))
				f.add(key("a"), cost(pawl.MaxCost), on("x"))
			}),
		newTest("without a rate take any cost", "A cost has no effect in a queue without a rate.", func(f *fixture) {
			f.add(cost(pawl.MaxCost))
			f.add(cost(2))
			equal(f, len(f.fetch(9)), 2, "jobs")
		}),
	}
}
