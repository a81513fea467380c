package worker_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// This file is the same in every package that stores its allocations.

const (
	allowanceFile = "testdata/allocations.txt"
	storeThem     = "go test . ./bolt ./worker -run '^TestAllocations$' -update"
)

var updateAllowances = flag.Bool("update", false, "store the allocations that TestAllocations counts")

// allowance is an operation whose allocations are stored.
type allowance struct {
	name  string
	ops   int                                // in one run
	slack float64                            // between two counts of the same code
	start func(t *testing.T, count runCount) // makes what a run needs, and has it counted
}

// runCount counts the allocations of the second of two runs, when pools and caches are
// warm. It lets one processor work, as testing.AllocsPerRun does, so that goroutines take
// turns in much the same way each time; and no garbage is collected, which would empty
// the pools.
type runCount func(run func())

func (a allowance) count(t *testing.T) float64 {
	counts := make([]float64, 3)
	for i := range counts {
		a.start(t, func(run func()) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			runtime.GC()
			run()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			run()
			runtime.ReadMemStats(&after)
			counts[i] = float64(after.Mallocs-before.Mallocs) / float64(a.ops)
		})
	}
	slices.Sort(counts)
	return math.Round(10*counts[len(counts)/2]) / 10
}

// compareAllowances fails when an operation allocates more than is stored, and also when
// it allocates less, so that what was won is not lost again without a word. What the
// compiler and the standard library allocate differs from one release to the next, and
// what bbolt does follows the size of a page, so counts are compared where they were
// made alone.
func compareAllowances(t *testing.T, all []allowance) {
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector allocates by itself, and pools drop at random under it")
	}
	release := runtime.Version()
	if parts := strings.SplitN(release, ".", 3); len(parts) == 3 {
		release = parts[0] + "." + parts[1]
	}
	made := fmt.Sprintf("# Allocations of one operation, by %s on %s/%s.", release, runtime.GOOS, runtime.GOARCH)
	if *updateAllowances {
		text := made + "\n# Made by: " + storeThem + "\n# A commit that raises one says why.\n"
		for _, a := range all {
			text += fmt.Sprintf("%s %.1f\n", a.name, a.count(t))
		}
		require.NoError(t, os.WriteFile(allowanceFile, []byte(text), 0o644))
		return
	}
	header, stored := readAllowances(t)
	if header != made {
		t.Skipf("counts that were made elsewhere are not compared\nstored: %s\nhere:   %s", header, made)
	}
	for _, a := range all {
		t.Run(a.name, func(t *testing.T) {
			allowed, ok := stored[a.name]
			require.True(t, ok, "%s has no such line; store it: %s", allowanceFile, storeThem)
			const bit = 0.01 // less than the numbers differ by, more than their arithmetic errs
			switch n := a.count(t); {
			case n > allowed+a.slack+bit:
				t.Errorf("it allocates %.1f times, %.1f are stored.\nFind what allocates more; or, where that must be, store it and say why in the commit: %s", n, allowed, storeThem)
			case n < allowed-a.slack-bit:
				t.Errorf("it allocates %.1f times only, %.1f are stored.\nStore the lower number, so that it stays low: %s", n, allowed, storeThem)
			}
		})
		delete(stored, a.name)
	}
	require.Empty(t, stored, "lines of %s that no operation has; leave them out: %s", allowanceFile, storeThem)
}

// readAllowances returns the first line, which says where the counts were made, and the
// counts by name.
func readAllowances(t *testing.T) (header string, stored map[string]float64) {
	text, err := os.ReadFile(allowanceFile)
	require.NoError(t, err)
	header, rest, _ := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	stored = make(map[string]float64)
	for line := range strings.Lines(rest) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "#" {
			continue
		}
		stored[name], err = strconv.ParseFloat(number, 64)
		require.NoError(t, err, "%s: %q", allowanceFile, line)
	}
	return header, stored
}
