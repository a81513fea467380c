package sim

import (
	"math/rand/v2"
	"time"
)

// Steps of the clock.
const (
	day     = 24 * time.Hour
	century = 100 * 365 * day
)

// GenerateClock makes the case of a seed with steps and stops of the wall clock.
func GenerateClock(seed uint64) *Case {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 9)), Case: &Case{Seed: seed, Clock: true}}
	g.Lease = time.Duration(5+g.IntN(20)) * time.Second
	g.MaxCrashes = []int{-1, 2, 5}[g.IntN(3)]
	for len(g.Ops) < opsOfCase/2 {
		if len(g.Ops) > 1 && g.IntN(8) == 0 {
			if g.add(g.step()); g.IntN(3) == 0 {
				g.add(Op{Do: "pass", For: longestSleep + time.Second})
			}
		} else {
			g.add(g.op())
		}
	}
	return g.Case
}

// step sets the clock ahead of or behind the simulation.
func (g *generator) step() Op {
	ahead := pick(g, 0, 0, time.Second, time.Minute, time.Hour, day, century, time.Duration(g.Int64N(int64(day))))
	if g.IntN(2) == 0 {
		ahead = -ahead
	}
	return Op{Do: "clock", For: ahead, Keep: g.IntN(6) == 0}
}
