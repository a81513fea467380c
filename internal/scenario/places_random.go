package scenario

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/workflow"
)

var placesSeeds = flag.Int("places.seeds", max(2, race.Fewer(10)), "random histories of runs with places")

// Rule: whatever happens to the runs, no limit is exceeded, no run waits for a place that is free, and the runs in a line begin
// in the order in which they came to it.
func (suite) PlacesAtRandom(t *testing.T) {
	for seed := range uint64(*placesSeeds) {
		sub(t, fmt.Sprint(seed), func(t *testing.T, k *kit) { newPlacesWalk(k, seed).walk() })
	}
}

// placesWalk is a random history.
type placesWalk struct {
	k          *kit
	rand       *rand.Rand
	open, key  int // the limits
	f          *workflow.Flow[int, string]
	runs       []pawl.ID
	keys       map[pawl.ID]string
	inTheOrder map[string][]pawl.ID // the runs that wait, by place, as last seen
}

func newPlacesWalk(k *kit, seed uint64) *placesWalk {
	w := &placesWalk{k: k, rand: rand.New(rand.NewPCG(seed, 1)), keys: make(map[pawl.ID]string)}
	w.drawLimits()
	return w
}

// drawLimits gives the flow random limits.
func (w *placesWalk) drawLimits() {
	w.open, w.key = w.rand.IntN(4), w.rand.IntN(3)
	var opts []workflow.Option
	if w.open > 0 {
		opts = append(opts, workflow.MaxOpen(w.open))
	}
	if w.key > 0 {
		opts = append(opts, workflow.MaxOpenPerKey(w.key))
	}
	w.f = desk(w.k, opts...)
}

func (w *placesWalk) walk() {
	k := w.k
	k.open(w.f)
	for n := range 60 {
		if w.rand.IntN(12) == 0 {
			k.crash()
		} else {
			w.act(n)
		}
		k.settle()
		w.judge()
	}
}

// act starts the nth run, or asks something of a run.
func (w *placesWalk) act(n int) {
	k := w.k
	if len(w.runs) == 0 || w.rand.IntN(11) < 5 {
		key := []string{"", "a", "b"}[w.rand.IntN(3)]
		opts := []workflow.StartOption{workflow.Key(cmp.Or(key, "x"))}
		if key == "" {
			opts = nil
		}
		h, err := w.f.Start(k.t.Context(), k.e, fmt.Sprint(n), n, opts...)
		require.NoError(k.t, err)
		w.runs = append(w.runs, h.Run())
		w.keys[h.Run()] = key
		return
	}
	run := w.runs[w.rand.IntN(len(w.runs))]
	do := []func(){
		func() { _ = k.e.Cancel(k.t.Context(), run, "") },
		func() { _ = k.e.Terminate(k.t.Context(), run, "") },
		func() { _ = k.e.Resume(k.t.Context(), run) },
		func() { _ = word.Send(k.t.Context(), k.e, run, "bye", "") },
		func() { _ = word.Send(k.t.Context(), k.e, run, "bye", "") },
		func() { _ = word.Send(k.t.Context(), k.e, run, "bye", "") },
	}
	do[w.rand.IntN(len(do))]()
}

// Rule: however the limits change from build to build, the rows of places agree with the runs, and all runs begin in the end.
func (suite) ChangedLimitsAtRandom(t *testing.T) {
	for seed := range uint64(*placesSeeds) {
		sub(t, fmt.Sprint(seed), func(t *testing.T, k *kit) { newPlacesWalk(k, seed).change() })
	}
}

func (w *placesWalk) change() {
	t, k := w.k.t, w.k
	k.open(w.f)
	for n := range 60 {
		if w.rand.IntN(8) == 0 {
			w.drawLimits()
			k.restart(fmt.Sprint(n), w.f)
		} else {
			w.act(n)
		}
		k.settle()
		require.NoError(t, k.e.Check(t.Context()))
	}
	for _, run := range w.runs {
		_ = word.Send(t.Context(), k.e, run, "bye", "")
		k.settle()
	}
	for _, run := range w.runs {
		info := k.info(run)
		require.True(t, info.Status.Ended(), "run %s waits for %s, which %v have", info.ID, info.Place, info.Holders)
	}
	require.Zero(t, k.rowsIn("places"))
}

// judge compares the runs with the limits.
func (w *placesWalk) judge() {
	t, k := w.k.t, w.k
	t.Helper()
	require.NoError(t, k.e.Check(t.Context()))
	of := make(map[string]int) // open runs by place; that of a key counts runs that wait for the flow too
	var waits []workflow.Info
	lines := make(map[string][]pawl.ID)
	for _, run := range w.runs {
		info := k.info(run)
		if info.Status.Ended() {
			continue
		}
		if info.Place != "" {
			waits = append(waits, info)
			lines[info.Place] = append(lines[info.Place], run)
		} else {
			of["flow desk"]++
		}
		if w.keys[run] != "" && !strings.HasPrefix(info.Place, "key ") {
			of["key "+w.keys[run]]++
		}
	}
	for place, n := range of {
		if limit := w.limit(place); limit > 0 {
			require.LessOrEqual(t, n, limit, place)
		}
	}
	for _, info := range waits {
		require.GreaterOrEqual(t, of[info.Place], w.limit(info.Place), "%s waits for %s", info.ID, info.Place)
	}
	for place, before := range w.inTheOrder {
		left := slices.DeleteFunc(slices.Clone(before), func(run pawl.ID) bool { return k.info(run).Status.Ended() })
		for i, run := range left { // those that have begun were first
			if begun := !slices.Contains(lines[place], run); begun && i > 0 {
				require.NotContains(t, lines[place], left[i-1], "%s: run %s begins before another", place, run)
			}
		}
	}
	w.inTheOrder = map[string][]pawl.ID{}
	for place, line := range lines {
		if strings.HasPrefix(place, "key ") { // a line of the flow has runs in the order in which they got their key
			w.inTheOrder[place] = line
		}
	}
}

func (w *placesWalk) limit(place string) int {
	if strings.HasPrefix(place, "key ") {
		return w.key
	}
	return w.open
}
