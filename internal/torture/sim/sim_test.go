package sim

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// plantVariable is the variable that makes the children of a test simulate a queue with a fault.
const plantVariable = "PAWL_SIM_PLANT"

func TestMain(m *testing.M) {
	if fault := os.Getenv(plantVariable); fault != "" {
		opener = plant(fault, 1)
	}
	harness.Main()
	os.Exit(m.Run())
}

// memoryDir is a folder in memory, removed at the end of the test.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := harness.MemoryFolder()
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// runFamily tries a family a few times.
func runFamily(t *testing.T, f *harness.Family, plan harness.Plan) harness.Result {
	t.Helper()
	plan.Folder = t.TempDir()
	return f.Run(context.Background(), plan)
}

// The families find nothing in the queue, and count each seed.
func TestFamiliesFindNothing(t *testing.T) {
	for _, f := range []*harness.Family{Random, Clock} {
		t.Run(f.Name, func(t *testing.T) {
			r := runFamily(t, f, harness.Plan{Goal: 4, Seed: 1})
			require.Empty(t, r.First)
			require.GreaterOrEqual(t, r.Tried, 4)
		})
	}
}

// A family reports a fault with the seed that shows it, and keeps a smaller case, which shows it again.
func TestFamilyFindsAPlantedFault(t *testing.T) {
	t.Setenv(plantVariable, "an ack lost")
	r := runFamily(t, Random, harness.Plan{Seed: 5, Once: true})
	require.Len(t, r.First, 1)
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(r.First[0].Dir)) })
	require.EqualValues(t, 5, r.First[0].Seed)
	kept := filepath.Join(r.First[0].Dir, "case.json")
	small, err := Load(kept)
	require.NoError(t, err)
	require.Less(t, len(small.Ops), 10)

	t.Setenv(CaseVariable, kept)
	again := runFamily(t, Random, harness.Plan{Seed: 6, Once: true})
	require.Len(t, again.First, 1)
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(again.First[0].Dir)) })
}

// Each planted fault is found within a few seeds.
func TestPlantedFaultsAreFound(t *testing.T) {
	for _, fault := range []string{
		"half a delay", "a priority lost", "a unique key lost", "an idempotency key lost", "a lease given twice", "no token check",
		"an ack lost", "an attempt lost", "a retry at once", "a failed job lost", "an extension lost", "a cancel lost", "attempts forgotten",
	} {
		t.Run(fault, func(t *testing.T) {
			require.NotZero(t, foundAfter(t, Generate, plant(fault, 3)))
		})
	}
	t.Run("a clock that never goes back", func(t *testing.T) {
		require.NotZero(t, foundAfter(t, GenerateClock, plant("a clock that never goes back", 1)))
	})
}

// foundAfter is the first seed that shows a fault, 0 for none of the first 50. How soon a seed shows one depends on scheduling.
func foundAfter(t *testing.T, generate func(uint64) *Case, open Opener) uint64 {
	dir := memoryDir(t)
	for seed := uint64(1); seed <= 50; seed++ {
		if err := Simulate(t, generate(seed), dir, open); err != nil {
			t.Log(err)
			return seed
		}
	}
	return 0
}

// A case that fails is shrunk to the few steps that it needs: a worker, a job, and time.
func TestShrinkLeavesWhatItTakes(t *testing.T) {
	dir := memoryDir(t)
	fails := func(c *Case) bool { return Simulate(t, c, dir, plant("an ack lost", 1)) != nil }
	c := Generate(2)
	require.True(t, fails(c))
	before, err := json.Marshal(c)
	require.NoError(t, err)
	small := Shrink(c, fails)
	require.True(t, fails(small))
	require.LessOrEqual(t, len(small.Ops), 3)
	require.Less(t, small.size(), c.size()/20)
	after, err := json.Marshal(c)
	require.NoError(t, err)
	require.Equal(t, before, after, "the whole case is as it was")
}

// A case is data: a seed makes the same case each time, and a case is read back from its file unchanged.
func TestCaseIsData(t *testing.T) {
	for seed := range uint64(20) {
		for _, c := range []*Case{Generate(seed), GenerateClock(seed)} {
			path := filepath.Join(t.TempDir(), "case.json")
			require.NoError(t, c.Save(path))
			loaded, err := Load(path)
			require.NoError(t, err)
			require.Equal(t, c, loaded)
		}
		require.Equal(t, Generate(seed), Generate(seed))
	}
	_, err := Load(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
