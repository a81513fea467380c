package hostile

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/torture/harness"
)

func TestMain(m *testing.M) {
	harness.Main()
	debug.SetGCPercent(400) // heaps are small, and collections took a third of the time
	os.Exit(m.Run())
}

// plan is a short run of a family.
func plan(units int) harness.Plan {
	return harness.Plan{Goal: units, Seed: 1}
}

// requireKept runs a family for a few units and requires that no promise was broken.
func requireKept(t *testing.T, f *harness.Family, units int) {
	t.Helper()
	result := f.Run(t.Context(), plan(units))
	if result.Missing != "" {
		t.Skip(result.Missing)
	}
	for _, v := range result.First {
		t.Error(v.Err)
	}
	require.Zero(t, result.Violations)
	require.GreaterOrEqual(t, result.Tried, units)
}

// Rule: no file, however damaged, does more harm than an error that says why it is
// refused.
func TestLibrary(t *testing.T) { requireKept(t, Library, race.Fewer(250)) }

// Rule: what Salvage makes of a damaged file is a sound queue.
func TestSalvage(t *testing.T) { requireKept(t, Salvage, race.Fewer(100)) }

// Rule: jobctl ends with a documented exit code over any file, and prints nothing that a
// terminal obeys.
func TestJobctl(t *testing.T) {
	race.SkipBuilt(t)
	if testing.Short() {
		t.Skip("not with -short: it builds a command")
	}
	requireKept(t, Jobctl, 50)
}

// makeAll makes and loads the sound files.
func makeAll(ctx context.Context) ([]*base, error) {
	dir, err := harness.MemoryFolder()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := makeBases(ctx, dir); err != nil {
		return nil, err
	}
	return loadBases(ctx, dir)
}

// sharedBases are the bases of all tests. Nothing changes them.
var sharedBases = sync.OnceValues(func() ([]*base, error) { return makeAll(context.Background()) })

// bases returns the sound files, and a folder.
func bases(t *testing.T) (all []*base, dir string) {
	t.Helper()
	all, err := sharedBases()
	require.NoError(t, err)
	dir, err = harness.MemoryFolder()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return all, dir
}

// Rule: a seed makes the same file in every run.
func TestSeedMakesTheSameFile(t *testing.T) {
	a, dir := bases(t)
	b, err := makeAll(t.Context())
	require.NoError(t, err)
	for seed := range uint64(race.Fewer(300)) {
		x, y := forge(a, seed, filepath.Join(dir, "scratch")), forge(b, seed, filepath.Join(dir, "scratch"))
		require.Equal(t, x.how, y.how)
		require.True(t, string(x.file) == string(y.file), "seed %d: %s", seed, x.how)
	}
}

// Rule: a seed does the same to a file in every run.
func TestSeedDoesTheSame(t *testing.T) {
	all, dir := bases(t)
	w := newWatch(nil)
	for seed := range uint64(race.Fewer(24)) {
		var steps [2][]string
		for n := range steps {
			trial := &trial{hostile: blank(all, seed, ""), ctx: t.Context(), dir: dir, watch: w}
			require.NoError(t, trial.run(filepath.Join(dir, "case.db")))
			steps[n] = trial.steps
		}
		require.Equal(t, steps[0], steps[1], "seed %d", seed)
	}
}

// Rule: every class of damage is drawn, and changes files.
func TestEveryClassDamages(t *testing.T) {
	all, dir := bases(t)
	for _, m := range mutations {
		changed := 0
		for seed := range uint64(40) {
			h := blank(all, seed, filepath.Join(dir, "scratch"))
			m.apply(h)
			if h.changed() {
				changed++
			}
		}
		require.Greater(t, changed, 10, m.name)
	}
}

// Rule: the sound files have everything that the mutations change: jobs in every state,
// branch pages, lists of free pages, payloads that lie apart, limits and what they keep
// waiting.
func TestSoundFiles(t *testing.T) {
	all, _ := bases(t)
	states, branches, lists, buckets, blocked := make(map[pawl.State]bool), 0, 0, make(map[string]bool), make(map[byte]bool)
	for _, b := range all {
		for _, e := range b.jobs {
			states[e.State] = true
		}
		for _, n := range b.tree {
			if n.flags == flagBranch {
				branches++
			}
		}
		for _, r := range b.rows {
			buckets[r.bucket] = true
			if r.bucket == "delayed" {
				blocked[b.whole[r.key]] = true
			}
		}
		if b.freelist != 0 {
			lists++
		}
	}
	require.Len(t, states, len(pawl.States()))
	require.Positive(t, branches)
	require.Equal(t, len(baseSizes), lists)
	require.Contains(t, buckets, "payloads")
	require.Contains(t, buckets, "effects")
	require.Contains(t, buckets, "unique")
	require.Contains(t, buckets, "keys")
	require.True(t, blocked[2] && blocked[3], "jobs that wait for room for their key, and for their turn")
}
