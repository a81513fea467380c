// Package allowance compares the allocations of operations with stored counts, in tests of packages
// with a hot path.
package allowance

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

const (
	file      = "testdata/allocations.txt" // of the package under test
	storeThem = "go test . ./bolt ./worker -run '^TestAllocations$' -update"
)

var update = flag.Bool("update", false, "store the allocations that TestAllocations counts")

// Operation is an operation whose allocations are stored.
type Operation struct {
	Name  string
	Ops   int                                // operations in one run
	Slack float64                            // allowed difference from the stored count
	Start func(t *testing.T, count RunCount) // sets up a run and calls count with it
}

// RunCount runs a function twice and counts the allocations of the second run, when pools and caches
// are warm. Like testing.AllocsPerRun it uses one processor, so that goroutines interleave alike.
// Garbage collection is off, because it would empty pools.
type RunCount func(run func())

func (o Operation) count(t *testing.T) float64 {
	counts := make([]float64, 3)
	for i := range counts {
		o.Start(t, func(run func()) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			runtime.GC()
			run()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			run()
			runtime.ReadMemStats(&after)
			counts[i] = float64(after.Mallocs-before.Mallocs) / float64(o.Ops)
		})
	}
	slices.Sort(counts)
	return math.Round(10*counts[len(counts)/2]) / 10
}

// Compare fails the test if an operation allocates more than its stored count, and also if it allocates
// less, so that improvements are kept. Allocations depend on the Go release, the platform and bbolt's
// page size, so Compare skips the test elsewhere than where the counts were made.
func Compare(t *testing.T, all []Operation) {
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector allocates, and pools drop items at random")
	}
	release := runtime.Version()
	if parts := strings.SplitN(release, ".", 3); len(parts) == 3 {
		release = parts[0] + "." + parts[1]
	}
	made := fmt.Sprintf("# Allocations of one operation, by %s on %s/%s.", release, runtime.GOOS, runtime.GOARCH)
	if *update {
		text := made + "\n# Made by: " + storeThem + "\n# A commit that raises one says why.\n"
		for _, o := range all {
			text += fmt.Sprintf("%s %.1f\n", o.Name, o.count(t))
		}
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		return
	}
	header, stored := read(t)
	if header != made {
		t.Skipf("the stored counts are from another platform\nstored: %s\nhere:   %s", header, made)
	}
	for _, o := range all {
		t.Run(o.Name, func(t *testing.T) {
			allowed, ok := stored[o.Name]
			require.True(t, ok, "%s has no count for it; store it with: %s", file, storeThem)
			const epsilon = 0.01 // above rounding errors, below a difference of stored counts
			switch n := o.count(t); {
			case n > allowed+o.Slack+epsilon:
				t.Errorf("it allocates %.1f times; the stored count is %.1f.\nFind what allocates more, or store the new count and say why in the commit: %s", n, allowed, storeThem)
			case n < allowed-o.Slack-epsilon:
				t.Errorf("it allocates only %.1f times; the stored count is %.1f.\nStore the lower count: %s", n, allowed, storeThem)
			}
		})
		delete(stored, o.Name)
	}
	require.Empty(t, stored, "%s has counts without an operation; update it with: %s", file, storeThem)
}

// read returns the first line, which says where the counts were made, and the counts by name.
func read(t *testing.T) (header string, stored map[string]float64) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	header, rest, _ := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	stored = make(map[string]float64)
	for line := range strings.Lines(rest) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "#" {
			continue
		}
		stored[name], err = strconv.ParseFloat(number, 64)
		require.NoError(t, err, "%s: %q", file, line)
	}
	return header, stored
}
