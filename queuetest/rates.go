package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// Cases of the rates of a queue.

func rateTests() []test {
	three := pawl.Rate{Starts: 3, Per: time.Minute} // one each 20 s
	perKey, burst := pawl.Limits{RatePerKey: three}, pawl.Rate{Starts: 3, Per: time.Minute, Burst: 2}
	wait := pawl.Request{Max: 9}
	return []test{
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
}
