package queuetest

import (
	"math"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

func weight(n int) func(*pawl.Envelope) { return func(e *pawl.Envelope) { e.Weight = n } }

// turnsBy requires that in any row of the starts two keys had turns by their weights: the numbers of their starts,
// divided by their weights, differ by at most one start of each.
func (f *fixture) turnsBy(all string, weights map[string]int) {
	f.Helper()
	for a, weightOfA := range weights {
		for b, weightOfB := range weights {
			low, high, ahead := 0.0, 0.0, 0.0
			for _, k := range all {
				switch string(k) {
				case a:
					ahead += 1 / float64(weightOfA)
				case b:
					ahead -= 1 / float64(weightOfB)
				}
				low, high = math.Min(low, ahead), math.Max(high, ahead)
			}
			if a != b && high-low > 1/float64(weightOfA)+1/float64(weightOfB)+1e-9 {
				f.Fatalf("keys %s and %s of the weights %d and %d took turns like this: %s", a, b, weightOfA, weightOfB, all)
			}
		}
	}
}

// fairWeightTests are the cases of keys whose turns have weights.
func fairWeightTests() []test {
	return []test{
		limitTest("by weight", "While keys have ready jobs, each has turns by the weight of its jobs, whichever comes first. One that comes in later takes part at once.",
			fairly, func(f *fixture) {
				f.addMany(60, key("c"))
				f.addMany(180, weight(3))
				f.addMany(360, key("a"), weight(6))
				by := weights{"a": 6, "-": 3, "c": 1}
				all := f.starts(300)
				f.turnsBy(all, by)
				f.addMany(200, key("d"), weight(pawl.MaxTurns))
				by["d"] = pawl.MaxTurns
				all = f.starts(200)
				f.turnsBy(all, by)
				equal(f, strings.Count(all, "d"), 100, "turns of the key that came in with half of the weights")
			}),
		limitTest("by weight, one by one", "A key whose jobs come one by one has no more turns than its weight.", fairly, func(f *fixture) {
			f.addMany(100, key("a"), weight(3))
			f.starts(10)
			f.add(key("b"))
			all := ""
			for range 40 {
				next := f.starts(1)
				if all += next; next == "b" {
					f.add(key("b"))
				}
			}
			equal(f, strings.Count(all, "b"), 10, "turns of the key of weight 1")
		}),
		limitTest("by another weight", "A job keeps the weight that it was enqueued with, over a delay and a retry. Another weight counts from the jobs that have it.", fairly, func(f *fixture) {
			delay := func(e *pawl.Envelope) { e.Delay = time.Minute }
			f.addMany(40, key("a"), weight(3), delay)
			f.addMany(40, key("b"), weight(1), delay)
			f.pass(time.Minute)
			f.turnsBy(f.starts(40), weights{"a": 3, "b": 1})
			for _, l := range f.leases(40) {
				f.ok(f.q.Settle(f.Context(), l.Nack(0, errBoom)), "nack")
			}
			f.addMany(30, key("a"), weight(1))
			f.turnsBy(f.starts(13), weights{"a": 3, "b": 1})
			f.turnsBy(f.starts(20), weights{"a": 1, "b": 1})
		}),
		limitTest("by weight, after some are gone", "Among the jobs without a key, later ones have later turns, also after some were cancelled.", fairly, func(f *fixture) {
			first := f.addMany(6, weight(3))
			for _, id := range first[3:] {
				f.cancel(id)
			}
			later := f.addMany(1, weight(3))
			for _, want := range append(first[:3:3], later...) {
				equal(f, f.leases(1)[0].ID, want, "the job whose turn it is")
			}
		}),
		limitTest("by weight, over a restart", "A restart forgets no weight.", fairly, func(f *fixture) {
			f.addMany(40, key("b"))
			f.addMany(100, key("a"), weight(4))
			all := f.starts(33)
			f.restart()
			f.addMany(40, key("a"), weight(4))
			f.turnsBy(all+f.starts(100), weights{"a": 4, "b": 1})
		}).needing(alone),
	}
}
