package workflows

import (
	"github.com/gopawl/pawl/bench/report"
)

// target is a line of what pawl sets out to reach.
type target struct {
	name, goal string
	callers    int
	atLeast    float64           // of pawl's throughput divided by the peer's
	peers      func(engine) bool // those that it is held against; the best of them counts
}

var targets = []target{
	{"1 at a time", "0.9 of DBOS with the same promise", 1, 0.9, func(e engine) bool { return e.name == dbosFull }},
	{"16 at a time", "5 times the best peer with the same promise", 16, 5, samePromise},
	{"64 at a time", "12 times the best peer with the same promise", 64, 12, samePromise},
}

func samePromise(e engine) bool { return !e.weaker() }

// check says whether the target was met, and by what.
func (t target) check(r comparison) (verdict, text string) {
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
		return "no", report.Number(lowest) + " times " + best
	}
	return "yes", report.Number(lowest) + " times " + best
}

// ratio is pawl's figure divided by another engine's.
func (r comparison) ratio(name string, callers int, metric string) (float64, bool) {
	a, b := r.find(pawlName, callers, metric), r.find(name, callers, metric)
	if a == nil || b == nil {
		return 0, false
	}
	return report.Ratio(a, b), true
}

func (r comparison) find(name string, callers int, metric string) *report.Result {
	return r.results.Find(name, caseName(callers, metric))
}
