package main

import (
	"slices"
)

// target is a line of what pawl sets out to reach.
type target struct {
	name, goal string
	callers    int
	atLeast    float64           // of pawl's throughput divided by the peer's
	peers      func(engine) bool // those that it is held against; the best of them counts
}

var targets = []target{
	{"1 at a time", "0.6 of DBOS with the same promise", 1, 0.6, func(e engine) bool { return e.name == dbosFull }},
	{"16 at a time", "5 times the best peer with the same promise", 16, 5, samePromise},
	{"64 at a time", "5 times the best peer with the same promise", 64, 5, samePromise},
}

func samePromise(e engine) bool { return !e.weaker() }

// check says whether the target was met, and by what.
func (t target) check(r report) (verdict, text string) {
	lowest, best := 0.0, ""
	for _, e := range r.engines {
		if e.name == pawlName || !t.peers(e) {
			continue
		}
		if ratio, ok := r.ratio(e.name, t.callers, throughput); ok && (best == "" || ratio < lowest) {
			lowest, best = ratio, e.name
		}
	}
	switch {
	case best == "":
		return "not measured", ""
	case lowest < t.atLeast:
		return "no", number(lowest) + " times " + best
	}
	return "yes", number(lowest) + " times " + best
}

// ratio is pawl's figure divided by another engine's: round by round, and of that the
// median, where both have as many rounds. What slows the machine down for a while then
// counts less.
func (r report) ratio(name string, callers int, metric string) (float64, bool) {
	a, b := r.find(pawlName, callers, metric), r.find(name, callers, metric)
	if a == nil || b == nil {
		return 0, false
	}
	if len(a.values) != len(b.values) {
		return a.median() / b.median(), true
	}
	all := make([]float64, len(a.values))
	for i := range all {
		all[i] = a.values[i] / b.values[i]
	}
	return median(all), true
}

func (r report) find(name string, callers int, metric string) *result {
	i := slices.IndexFunc(r.results, func(have *result) bool {
		return have.engine == name && have.callers == callers && have.metric == metric
	})
	if i < 0 {
		return nil
	}
	return r.results[i]
}
