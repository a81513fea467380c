// Package allowance compares how often an operation allocates with a stored count, in the
// tests of those packages that have a hot path.
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

// Operation is one whose allocations are stored.
type Operation struct {
	Name  string
	Ops   int                                // in one run
	Slack float64                            // between two counts of the same code
	Start func(t *testing.T, count RunCount) // makes what a run needs, and has it counted
}

// RunCount counts the allocations of the second of two runs, when pools and caches are
// warm. It lets one processor work, as testing.AllocsPerRun does, so that goroutines take
// turns in much the same way each time; and no garbage is collected, which would empty
// the pools.
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

// Compare fails when an operation allocates more than is stored, and also when
// it allocates less, so that what was won is not lost again without a word. What the
// compiler and the standard library allocate differs from one release to the next, and
// what bbolt does follows the size of a page, so counts are compared where they were
// made alone.
func Compare(t *testing.T, all []Operation) {
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector allocates by itself, and pools drop at random under it")
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
		t.Skipf("counts that were made elsewhere are not compared\nstored: %s\nhere:   %s", header, made)
	}
	for _, o := range all {
		t.Run(o.Name, func(t *testing.T) {
			allowed, ok := stored[o.Name]
			require.True(t, ok, "%s has no such line; store it: %s", file, storeThem)
			const bit = 0.01 // less than the numbers differ by, more than their arithmetic errs
			switch n := o.count(t); {
			case n > allowed+o.Slack+bit:
				t.Errorf("it allocates %.1f times, %.1f are stored.\nFind what allocates more; or, where that must be, store it and say why in the commit: %s", n, allowed, storeThem)
			case n < allowed-o.Slack-bit:
				t.Errorf("it allocates %.1f times only, %.1f are stored.\nStore the lower number, so that it stays low: %s", n, allowed, storeThem)
			}
		})
		delete(stored, o.Name)
	}
	require.Empty(t, stored, "lines of %s that no operation has; leave them out: %s", file, storeThem)
}

// read returns the first line, which says where the counts were made, and the
// counts by name.
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
