package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// opsOfCase is how many steps a case has.
const opsOfCase = 200

// workers is the number of workers that a process may have at a time.
const workers = 3

// generator makes a case of a seed.
type generator struct {
	*rand.Rand
	*Case
	jobs int
}

// Generate makes the case of a seed with random calls, crashes and stalls.
func Generate(seed uint64) *Case {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 8)), Case: &Case{Seed: seed}}
	g.Lease = time.Duration(5+g.IntN(20)) * time.Second
	g.MaxCrashes = []int{-1, 1, 2, 3, 5, 5}[g.IntN(6)]
	if g.Suspect = g.IntN(8) == 0; g.Suspect {
		g.MaxCrashes = 5
		g.suspect()
		return g.Case
	}
	for len(g.Ops) < opsOfCase {
		g.Ops = append(g.Ops, g.op())
	}
	g.Pool = pick(g, 0, 0, 1, 3)
	return g.Case
}

func (g *generator) add(op Op) { g.Ops = append(g.Ops, op) }

func (g *generator) op() Op {
	switch n := g.IntN(100); {
	case len(g.Ops) < 2:
		return Op{Do: "start", Worker: len(g.Ops), Crew: g.crew()}
	case n < 27:
		return g.enqueue()
	case n < 52:
		return g.time()
	case n < 57:
		return Op{Do: "start", Worker: g.IntN(workers), Crew: g.crew()}
	case n < 60:
		return Op{Do: "stop", Worker: g.IntN(workers)}
	case n < 65:
		return Op{Do: "stall", Worker: g.IntN(workers), For: g.long()}
	case n < 66:
		return Op{Do: "refuse", For: g.long()}
	case n < 69:
		return Op{Do: "crash", N: pick(g, 0, 0, 1, 2, 3, 5)}
	case n < 73:
		op := Op{Do: "beside"}
		for range 2 + g.IntN(3) {
			op.Beside = append(op.Beside, g.call())
		}
		return op
	}
	return g.call()
}

// call is a call that may overlap with others.
func (g *generator) call() Op {
	switch n := g.IntN(28); {
	case n < 6:
		return Op{Do: "take", Queue: g.queue(), N: 1 + g.IntN(3)}
	case n < 14:
		return Op{Do: "end", Job: g.IntN(6), Verb: pick(g, "ack", "ack", "nack", "abandon", "release", "snooze", "extend"), For: g.delay()}
	case n < 18:
		return Op{Do: "cancel", Job: g.job()}
	case n < 22:
		return Op{Do: "retry", Job: g.job(), Keep: g.IntN(2) == 0}
	case n < 24:
		return Op{Do: "delete", Job: g.job()}
	case n < 25:
		return Op{Do: "pause", Queue: g.queue()}
	case n < 27:
		return Op{Do: "resume", Queue: g.queue()}
	}
	return Op{Do: "reap"}
}

// time lets time pass, sometimes exactly the length of a lease.
func (g *generator) time() Op {
	d := pick(g, time.Millisecond, 100*time.Millisecond, time.Second, 3*time.Second, 10*time.Second, time.Minute)
	if g.IntN(8) == 0 {
		return Op{Do: "pass", For: g.Lease - time.Duration(g.IntN(2))*step}
	}
	return Op{Do: "pass", For: d}
}

func (g *generator) enqueue() Op {
	op := Op{Do: "enqueue"}
	for range 1 + g.IntN(3) {
		op.Jobs = append(op.Jobs, g.newJob())
	}
	return op
}

func (g *generator) newJob() Job {
	g.jobs++
	j := Job{N: g.jobs, Kind: g.kind(), Queue: g.queue(), Priority: int8(g.IntN(3) - 1), Retries: g.IntN(4), Size: g.IntN(100)}
	one := func(in int) bool { return g.IntN(in) == 0 }
	if one(8) {
		j.Size = g.IntN(3000)
	}
	if one(4) {
		j.Delay = g.delay()
	}
	if one(6) {
		j.Deadline = j.Delay + g.delay()
	}
	if one(6) {
		j.Retain = g.delay()
	}
	if one(6) {
		j.Timeout = time.Second + g.delay()
	}
	if one(5) {
		j.Unique, j.Reject = fmt.Sprint("u", g.IntN(3)), one(4)
	}
	if one(4) {
		j.Effect, j.TTL = fmt.Sprint("e", g.IntN(3)), pick(g, 0, g.delay(), g.delay())
	}
	for range 1 + g.IntN(4) {
		j.Runs = append(j.Runs, g.run())
	}
	return j
}

func (g *generator) run() Run {
	r := Run{Do: pick(g, succeeds, succeeds, succeeds, succeeds, fails, fails, retries, permanent, snoozes, panics, exits)}
	switch g.IntN(6) {
	case 0:
	case 1:
		r.Take = g.long()
	default:
		r.Take = time.Duration(g.IntN(3000)) * time.Millisecond
	}
	r.Deaf = g.IntN(6) == 0
	if r.Do == retries || r.Do == snoozes {
		r.For = time.Second + g.delay()
	}
	return r
}

func (g *generator) crew() *Crew {
	c := &Crew{Queues: pick(g, queueNames, queueNames, queueNames[:1], queueNames[1:]), Kinds: kindNames, Concurrency: 1 + g.IntN(4),
		RetryShare: pick(g, 0, 0, 0.2, 0.5), Stuck: g.grace(), Drain: g.grace(), Grace: g.grace(),
		Timeout: pick(g, 0, 0, g.long()), Backoff: pick(g, 0, time.Second, g.delay())}
	if g.IntN(6) == 0 {
		c.Kinds = kindNames[:2]
	}
	if g.IntN(3) == 0 {
		c.Weights = map[string]int{"x": 1 + g.IntN(5)}
	}
	return c
}

func (g *generator) queue() string { return pick(g, queueNames...) }
func (g *generator) kind() string  { return pick(g, kindNames...) }
func (g *generator) job() int      { return max(1, g.jobs-g.IntN(20)) }

// Times are whole milliseconds, so they never coincide with steps.
func (g *generator) delay() time.Duration { return time.Duration(1+g.IntN(30_000)) * time.Millisecond }
func (g *generator) long() time.Duration  { return time.Duration(1+g.IntN(60_000)) * time.Millisecond }
func (g *generator) grace() time.Duration { return time.Duration(1+g.IntN(5_000)) * time.Millisecond }

// pick returns one of the values.
func pick[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

// suspect makes a case with many jobs, one of which crashes its process each time it runs.
func (g *generator) suspect() {
	for n := range 2 {
		g.add(Op{Do: "start", Worker: n, Crew: &Crew{Queues: queueNames, Kinds: kindNames, Concurrency: 2 + g.IntN(6),
			Stuck: time.Minute, Drain: time.Second, Grace: time.Second}})
	}
	at := g.IntN(20)
	for len(g.Ops) < opsOfCase/2 {
		op := Op{Do: "enqueue"}
		for range 1 + g.IntN(4) {
			g.jobs++
			op.Jobs = append(op.Jobs, Job{N: g.jobs, Kind: g.kind(), Queue: g.queue(), Retries: 3,
				Runs: []Run{{Do: pick(g, succeeds, succeeds, fails), Take: g.long() / 4}}})
		}
		if len(g.Ops) >= at && at >= 0 {
			at = -1
			op.Jobs[0].Runs = []Run{{Do: kills, Take: g.grace()}}
		}
		g.add(op)
		g.add(Op{Do: "pass", For: g.grace() / 2})
	}
}
