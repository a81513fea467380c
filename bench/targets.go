package main

import (
	"cmp"
	"math"
	"strings"

	"github.com/gopawl/pawl/bench/report"
	"github.com/gopawl/pawl/bench/system"
)

// target is one line of what pawl sets out to reach, and how that is measured.
type target struct {
	name, goal string

	// atFullSize says that the goal names a number of jobs or a time: a run of smaller
	// cases shows a figure, but does not decide.
	atFullSize bool

	parts []part
}

// part is one figure of a target.
type part struct {
	bound   bound
	limit   float64
	measure measure
}

type bound int

const (
	atLeast bound = iota
	atMost
	shown // to see it beside the others; it decides nothing
)

// measure computes a figure from the results. The text says it in words, and without a
// figure, what it would have been.
type measure func(comparison) (value float64, text string, ok bool)

// verdict is whether a target was met.
type verdict string

const (
	met        verdict = "yes"
	missed     verdict = "no"
	unmeasured verdict = "not measured"
)

var targets = []target{
	{
		name: "drain, 16 no-op workers, 100 B",
		goal: "0.5 of the ceiling, and 20 times the best peer with the same promise at 16 workers",
		parts: []part{
			{atLeast, 0.5, ofCeiling("drain")},
			{atLeast, 20, timesPeer("drain", samePromise)},
		},
	},
	{
		name:  "64 producers and 16 workers",
		goal:  "10 times the best peer with the same promise",
		parts: []part{{atLeast, 10, timesPeer("steady", samePromise)}},
	},
	{
		name: "enqueue, 64 producers",
		goal: "0.6 of the ceiling at batches of 64, 10 times the best embedded peer with the same promise",
		parts: []part{
			{atLeast, 0.6, ofCeiling("producers")},
			{atLeast, 10, timesPeer("producers", samePromiseEmbedded)},
		},
	},
	{
		name: "enqueue, bulk of 1 000",
		goal: "0.4 of the ceiling, 2 times the best peer",
		parts: []part{
			{atLeast, 0.4, ofCeiling("bulk")},
			{atLeast, 2, timesPeer("bulk", anyPeer)},
		},
	},
	{
		name: "enqueue, one producer",
		goal: "0.9 of a lone bbolt commit (two syncs: SQLite needs one)",
		parts: []part{
			{atLeast, 0.9, named(" of a lone commit", pawlBy("producer", ceilingName, "producer"))},
			{shown, 0, timesPeer("producer", samePromiseEmbedded)},
		},
	},
	{
		name: "latency on an idle queue",
		goal: "p50 within 1.5 lone commits that idled as long between them; p99 within 2 times the lone p99",
		parts: []part{
			{atMost, 1.5, named(" lone commits at p50", pawlBy("latency/p50", ceilingName, "latency/p50"))},
			{atMost, 2, named(" lone commits at p99", pawlBy("latency/p99", ceilingName, "latency/p99"))},
		},
	},
	{
		name: "backlog of 10 million against 10 thousand",
		goal: "enqueue and fetch within 0.7",
		parts: []part{
			{atLeast, 0.7, named(" in enqueue", of("backlog-10M/enqueue-to-10k"))},
			{atLeast, 0.7, named(" in fetch", of("backlog-10M/drain-to-10k"))},
		},
	},
	{
		name: "opening 1 million jobs",
		goal: "clean close 50 ms; after a kill 0.25 s with a warm page cache, 1 s cold; heap under 64 MiB; " +
			"100 000 leased recovered within 1 s more",
		atFullSize: true,
		parts: []part{
			{atMost, 50, named(" ms after a clean close", of("open/clean-warm"))},
			{atMost, 250, named(" ms after a kill, warm", of("open/killed-unleased-warm"))},
			{atMost, 1000, named(" ms cold", of("open/killed-unleased-cold"))},
			{atMost, 64, named(" MiB of heap", of("open/heap"))},
			// Open takes leases back before it returns.
			{atMost, 1000, named(" ms more with leases to take back",
				pawlAbove("open/killed-warm", pawlName, "open/killed-unleased-warm"))},
		},
	},
	{
		name:       "1 million jobs due in the same second",
		goal:       "all ready within 8 s, enqueue p99 meanwhile under 20 lone commits",
		atFullSize: true,
		parts: []part{
			{atMost, 8, named(" s until all are ready", of("due/all-ready"))},
			{atMost, 20, named(" lone commits at p99", pawlBy("due/enqueue-p99", ceilingName, "due/lone-commit"))},
		},
	},
	{
		name:       "idle, 100 000 delayed until tomorrow",
		goal:       "no commit, at most one wake-up a minute",
		atFullSize: true,
		parts: []part{
			{atMost, 0, named(" commits", of("idle/commits"))},
			// The runtime of Go wakes up by itself now and then.
			{atMost, 1, named(" wake-ups a minute more than an empty program",
				pawlAbove("idle/wake-ups", pawlName, "idle/wake-ups-empty-program"))},
			{shown, 0, named(" of the empty program", of("idle/wake-ups-empty-program"))},
		},
	},
	{
		name: "64 KiB payloads",
		goal: "0.6 of the ceiling in bytes, each payload written once",
		parts: []part{
			{atLeast, 0.6, named(" of the ceiling in enqueue",
				pawlBy("payload-64KiB/enqueue", ceilingName, "payload-64KiB/enqueue"))},
			{atLeast, 0.6, named(" of the ceiling in drain",
				pawlBy("payload-64KiB/drain", ceilingName, "payload-64KiB/drain"))},
			// Pages are never full and the rows of a job are written too. What is
			// written twice exceeds 2.
			{atMost, 1.5, named(" bytes written for each of payload", of("writes/written"))},
		},
	},
	{
		name:       "file after a million jobs through a backlog of a thousand",
		goal:       "8 MiB; 64 MiB with a reader open for 10 s",
		atFullSize: true,
		parts: []part{
			{atMost, 8, named(" MiB", of("space/file"))},
			{atMost, 64, named(" MiB with a reader", of("space/file-reader"))},
		},
	},
	{
		name: "allocations, enqueue and run of a 100 B job at batches of 64",
		goal: "12 above the ceiling program's, counts and bytes",
		parts: []part{
			{atMost, 12, named(" allocations above the ceiling's", pawlAbove("allocs/allocs", ceilingName, "allocs/allocs"))},
			{shown, 0, named(" bytes above the ceiling's", pawlAbove("allocs/bytes", ceilingName, "allocs/bytes"))},
		},
	},
}

// check says whether the target was met, and by what figures. There is no text where there
// are no figures.
func (t target) check(r comparison) (verdict, string) {
	decided := !t.atFullSize || r.size.million >= fullSize.million
	result := met
	var texts []string
	figures := 0
	for _, p := range t.parts {
		value, text, ok := p.measure(r)
		if ok {
			figures++
		}
		switch {
		case !ok && p.bound == shown:
			continue
		case !ok:
			text += ": not measured"
			if result == met {
				result = unmeasured
			}
		case decided && p.misses(value):
			result = missed
			if report.Number(value) == report.Number(p.limit) {
				text += " (just missed)"
			} else {
				text += " (missed)"
			}
		}
		texts = append(texts, text)
	}
	switch {
	case figures == 0:
		return unmeasured, ""
	case !decided:
		return unmeasured, strings.Join(texts, "; ") + "; but in smaller cases"
	}
	return result, strings.Join(texts, "; ")
}

func (p part) misses(value float64) bool {
	return p.bound == atLeast && value < p.limit || p.bound == atMost && value > p.limit
}

// of is a figure of pawl.
func of(name string) measure {
	return func(r comparison) (float64, string, bool) {
		if have := r.results.Find(pawlName, name); have != nil {
			return have.Value, report.Number(have.Value), true
		}
		return 0, "", false
	}
}

// pawlBy is a figure of pawl divided by another.
func pawlBy(name, other, otherName string) measure { return by(pawlName, name, other, otherName) }

// by is a figure of a system divided by one of another.
func by(system, name, other, otherName string) measure {
	return compared(system, name, other, otherName, func(a, b float64) float64 { return a / b })
}

// pawlAbove is by how much a figure of pawl exceeds another.
func pawlAbove(name, other, otherName string) measure {
	return compared(pawlName, name, other, otherName, func(a, b float64) float64 { return math.Round((a-b)*1000) / 1000 })
}

func compared(system, name, other, otherName string, how func(a, b float64) float64) measure {
	return func(r comparison) (float64, string, bool) {
		a, b := r.results.Find(system, name), r.results.Find(other, otherName)
		if a == nil || b == nil {
			return 0, "", false
		}
		v := report.Compare(a, b, how)
		return v, report.Number(v), true
	}
}

func ofCeiling(name string) measure {
	return named(" of the ceiling", pawlBy(name, ceilingName, name))
}

// named puts words behind a figure.
func named(words string, m measure) measure {
	return func(r comparison) (float64, string, bool) {
		value, text, ok := m(r)
		return value, strings.TrimSpace(text + words), ok
	}
}

// timesPeer compares with the best of the peers, the one to which pawl's ratio is lowest.
func timesPeer(name string, among func(system.System) bool) measure {
	return func(r comparison) (float64, string, bool) {
		var lowest float64
		var best *system.System
		for _, s := range r.systems {
			if s.Name == pawlName || s.Name == ceilingName || !among(s) {
				continue
			}
			ratio, _, ok := pawlBy(name, s.Name, name)(r)
			if ok && (best == nil || ratio < lowest) {
				lowest, best = ratio, &s
			}
		}
		if best == nil {
			return 0, "times the best peer", false
		}
		text := report.Number(lowest) + " times " + best.Name
		if best.Durability != system.Synced {
			text += ", which promises less"
		}
		return lowest, text, true
	}
}

func anyPeer(system.System) bool { return true }

func samePromise(s system.System) bool { return s.Durability == system.Synced }

func samePromiseEmbedded(s system.System) bool { return samePromise(s) && s.Start == nil }

// rank puts pawl first and the ceiling second.
func rank(a, b *report.Result) int {
	place := func(name string) int {
		switch name {
		case pawlName:
			return 0
		case ceilingName:
			return 1
		}
		return 2
	}
	return cmp.Compare(place(a.System), place(b.System))
}
