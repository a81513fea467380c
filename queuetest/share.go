package queuetest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// retries puts n jobs of kind "r" on a queue that failed once each, and lets two
// seconds pass, so that they come before all later jobs.
func (f *fixture) retries(n int, change ...func(*pawl.Envelope)) {
	f.Helper()
	own := make(map[pawl.ID]bool)
	queue := pawl.DefaultQueue
	for range n {
		e := f.add(append([]func(*pawl.Envelope){of("r")}, change...)...)
		own[e.ID], queue = true, e.Queue
	}
	for _, l := range f.fetch(99, queue) {
		if own[l.ID] {
			f.nack(l, time.Second)
		} else {
			f.release(l)
		}
	}
	f.pass(2 * time.Second)
}

// firsts puts n jobs of kind "f" on a queue that never ran.
func (f *fixture) firsts(n int, change ...func(*pawl.Envelope)) {
	f.Helper()
	for range n {
		f.add(append([]func(*pawl.Envelope){of("f")}, change...)...)
	}
}

// onQueue names the queue and keeps the kind.
func onQueue(name string) func(*pawl.Envelope) { return func(e *pawl.Envelope) { e.Queue = name } }

// shared returns the kinds of the jobs that fetches of these sizes get, with a share
// for retries.
func (f *fixture) shared(share float64, sizes ...int) (text string) {
	f.Helper()
	for _, n := range sizes {
		text += kinds(f.request(pawl.Request{Max: n, RetryShare: share}))
	}
	return text
}

// shares fetches from a queue with this many retries and then as many first attempts, by
// fetches of these sizes.
func shares(name string, retries, firsts int, share float64, want string, sizes ...int) test {
	return newTest(name,
		"While a queue has retries and first attempts, RetryShare is the fraction of fetched jobs that are retries. A "+
			"remainder carries over to the next fetch. When one sort runs out, the other takes all places.", func(f *fixture) {
			f.retries(retries)
			f.firsts(firsts)
			equal(f, f.shared(share, sizes...), want, "jobs")
		})
}

func shareTests() []test {
	ones := []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	return []test{
		shares("a fifth, in one fetch", 5, 10, 0.2, "ffffrffffr", 10),
		shares("a fifth, by fetches of one", 5, 10, 0.2, "ffffrffffr", ones...),
		shares("a fifth, by fetches of three", 5, 12, 0.2, "ffffrffffrff", 3, 3, 3, 3),
		shares("a half", 5, 5, 0.5, "frfrfrfr", 3, 5),
		shares("a tenth, whose sum falls short of 1 by rounding", 5, 20, 0.1, "fffffffffrfffffffffr", 20),
		shares("three tenths", 5, 10, 0.3, "fffrffrffr", 4, 6),
		shares("nine tenths", 12, 5, 0.9, "frrrrrrrrr", ones...),
		shares("all", 4, 3, 1, "rrrrfff", 7),
		shares("without a share, the usual order", 3, 3, 0, "rrrfff", 6),
		shares("no retries", 0, 3, 0.2, "fff", 9),
		shares("no first runs", 3, 0, 0.2, "rrr", 9),
		shares("the first runs run out", 5, 2, 0.2, "ffrrrrr", 9),
		shares("the retries run out", 1, 6, 0.5, "frfffff", 9),
		newTest("first runs alone save nothing up",
			"Only jobs that are granted while there are both sorts count towards the share.", func(f *fixture) {
				f.firsts(4)
				equal(f, f.shared(0.2, 4), "ffff", "first attempts alone")
				f.retries(2)
				f.firsts(6)
				equal(f, f.shared(0.2, 6), "ffffrf", "jobs once there are both")
			}),
		newTest("retries alone use nothing up",
			"Only jobs that are granted while there are both sorts count towards the share.", func(f *fixture) {
				f.retries(5)
				equal(f, f.shared(0.5, 2), "rr", "retries alone")
				f.firsts(5)
				equal(f, f.shared(0.5, 4), "frfr", "jobs once there are both")
			}),
		newTest("a remainder while there is one sort", "The remainder of the share stays while there are no first attempts.", func(f *fixture) {
			f.retries(4)
			f.firsts(1)
			equal(f, f.shared(0.5, 1), "f", "job while there are both")
			equal(f, f.shared(0.5, 1), "r", "job while there are retries alone")
			f.firsts(4)
			equal(f, f.shared(0.5, 2), "rf", "jobs once there are both again")
		}),
		newTest("each queue its own", "Each queue has its own share and its own remainder.", func(f *fixture) {
			var text string
			for _, name := range []string{"a", "b"} {
				f.retries(3, onQueue(name))
			}
			for _, name := range []string{"a", "b"} {
				f.firsts(3, onQueue(name))
			}
			for range 2 {
				for _, name := range []string{"a", "b"} {
					text += kinds(f.request(pawl.Request{Queues: []string{name}, Max: 1, RetryShare: 0.5}))
				}
			}
			equal(f, text, "ffrr", "jobs by turns from a and b")
			equal(f, kinds(f.request(pawl.Request{Queues: []string{"a", "b"}, Max: 4, RetryShare: 0.5})), "ffrr", "jobs of one fetch")
		}),
		newTest("a share that changes",
			"The remainder of a share counts for later fetches with any share. A fetch without a share keeps the remainder.", func(f *fixture) {
				f.retries(6)
				f.firsts(6)
				equal(f, f.shared(0.4, 2), "ff", "with 0.4")
				equal(f, f.shared(0, 2), "rr", "without a share")
				equal(f, f.shared(0.2, 2), "rf", "with 0.2")
			}),
		newTest("order within each sort", "Retries keep their usual order among themselves, and so do first attempts.", func(f *fixture) {
			f.retries(1, of("s"))
			f.retries(1, of("t"))
			f.retries(1, of("R"), priority(1))
			f.firsts(1, of("g"))
			f.firsts(1, of("h"))
			f.firsts(1, of("F"), priority(1))
			equal(f, f.shared(0.5, 6), "FRgsht", "jobs")
		}),
		newTest("retries that wait", "A retry that is still delayed does not count as available.", func(f *fixture) {
			f.firsts(1)
			f.nack(f.lease(), time.Hour)
			f.firsts(4)
			for range 4 {
				leases := f.request(pawl.Request{Max: 1, RetryShare: 0.5})
				equal(f, kinds(leases), "f", "job while it waits")
				f.ack(leases[0])
			}
			f.pass(time.Hour)
			f.firsts(2, of("g"))
			equal(f, f.shared(0.5, 3), "gfg", "jobs afterwards")
		}),
		newTest("what is a retry",
			"A job is a retry if its Attempts is not 0. A release, a snooze, and a crash do not make a retry. Neither does "+
				"a retry by an operator, unless it keeps the attempts.", func(f *fixture) {
				for _, how := range []func(*pawl.Lease){
					f.release,
					func(l *pawl.Lease) { f.snooze(l, 0) },
					f.expire,
					func(l *pawl.Lease) { f.abandon(l); f.retry(l.ID, false) },
				} {
					f.fresh(Settings{})
					f.retries(1)
					f.firsts(1, priority(9)) // so that the usual order would return it first
					how(f.leases(1)[0])
					equal(f, f.shared(1, 2), "rf", "jobs with a share of 1")
				}
				f.fresh(Settings{})
				f.firsts(1, of("k"))
				l := f.lease()
				f.abandon(l)
				f.retry(l.ID, true)
				f.pass(time.Second)
				f.firsts(1, priority(9))
				equal(f, f.shared(1, 2), "kf", "jobs, of which one kept its attempts")
			}),
		newTest("a job that crashed",
			"A suspect belongs to its sort. It does not count as available while no slot is idle for it.", func(f *fixture) {
				f.retries(1)
				f.expire(f.lease())
				f.firsts(6)
				for range 4 {
					equal(f, kinds(f.request(pawl.Request{Max: 1, Ahead: 1, RetryShare: 0.5})), "f", "the job without an idle slot")
				}
				equal(f, f.shared(0.5, 2), "fr", "jobs with idle slots")

				f.fresh(Settings{})
				f.retries(6)
				f.firsts(1, priority(9)) // so that the usual order would return it first
				f.expire(f.leases(1)[0])
				equal(f, kinds(f.request(pawl.Request{Max: 2, Ahead: 2, RetryShare: 0.5})), "rr", "jobs while the first attempt has no idle slot")
				equal(f, f.shared(0.5, 2), "fr", "jobs with idle slots")
			}),
		restartTest("after a restart", "After a restart, the queue knows which jobs are retries.", func(f *fixture) {
			f.retries(4)
			f.firsts(8)
			f.restart()
			equal(f, f.shared(0.2, 10), "ffffrffffr", "jobs")
		}),
		newTest("a fetch that waits", "A waiting fetch takes the next job, of either sort.", func(f *fixture) {
			for range 3 {
				leases, call := f.fetching(f.Context(), pawl.Request{Max: 2, RetryShare: 0.2})
				f.waits(call, "while there is no job")
				f.firsts(1)
				f.ends(call, nil, "fetch")
				again, call := f.fetching(f.Context(), pawl.Request{Max: 2, RetryShare: 0.2})
				f.nack((*leases)[0], 0)
				f.ends(call, nil, "fetch of the retry")
				f.ack((*again)[0])
			}
		}),
		newTest("any share",
			"For any share and any number of jobs, the number of retries is the share of that number, or less than one "+
				"below it.", func(f *fixture) {
				for _, share := range []float64{0.01, 1.0 / 7, 1.0 / 3, 0.45, 0.7, 0.99} {
					f.fresh(Settings{})
					batch := newBatch(60, of("r"))
					f.enqueue(batch...)
					for _, l := range f.leases(60) {
						f.nack(l, 0)
					}
					f.pass(time.Second)
					f.firsts(60)
					text := f.shared(share, 1, 2, 3, 4, 5, 6, 7, 8, 9, 5)
					for n := 1; n <= len(text); n++ {
						got := float64(strings.Count(text[:n], "r"))
						if want := share * float64(n); got > want+1e-6 || got < want-1 {
							f.Fatalf("with a share of %v the first %d jobs have %v retries: %s", share, n, got, text)
						}
					}
				}
			}),
		newTest("refused", "A share is from 0 to 1. Any other is refused, and nothing is leased.", func(f *fixture) {
			f.add()
			for _, share := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1), math.Inf(-1)} {
				_, err := f.q.Fetch(f.Context(), pawl.Request{Max: 1, RetryShare: share})
				f.invalid(err, fmt.Sprint("a share of ", share))
			}
			f.lease()
		}),
	}
}
