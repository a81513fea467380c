package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/torture/harness"
)

func TestMain(m *testing.M) {
	harness.Main()
	os.Exit(m.Run())
}

// What the go tool says.
const (
	works = "fuzz: elapsed: 0s, gathering baseline coverage: 0/4 completed\n" +
		"fuzz: elapsed: 3s, execs: 10000 (3333/sec), new interesting: 2 (total: 6)\n" +
		"fuzz: elapsed: 4s, execs: 12345 (2345/sec), new interesting: 2 (total: 6)\nPASS\nok\n"
	fails = "fuzz: elapsed: 1s, execs: 77 (77/sec), new interesting: 0 (total: 1)\n" +
		"--- FAIL: FuzzIt (1.00s)\n    --- FAIL: FuzzIt (0.00s)\n        it_test.go:7: planted\n\n" +
		"    Failing input written to testdata/fuzz/FuzzIt/1\nFAIL\n"
	late = "fuzz: elapsed: 2s, execs: 99 (9/sec), new interesting: 0 (total: 1)\n--- FAIL: FuzzIt (2.01s)\n    context deadline exceeded\nFAIL\n"
)

// run runs a family of two targets with the given output of the go tool.
func run(t *testing.T, says map[string]string) harness.Result {
	t.Helper()
	f := &fuzzing{all: []target{{"p", "", "FuzzA"}, {"p", "", "FuzzB"}}, each: []int{7, 8}}
	f.fuzz = func(_ context.Context, next target, executions int, _ *rand.Rand) (out []byte, err error) {
		out = []byte(says[next.name])
		if executions != map[string]int{"FuzzA": 7, "FuzzB": 8}[next.name] {
			return out, fmt.Errorf("%s is asked for %d executions", next, executions)
		}
		if says[next.name] != works {
			err = errors.New("exit status 1")
		}
		return out, err
	}
	family := *Fuzz
	family.Missing = nil
	family.Prepare = func(*harness.Env) (func(*harness.Try) error, error) { return f.try, nil }
	result := family.Run(t.Context(), harness.Plan{Goal: 1, Time: time.Minute, Once: true})
	for _, v := range result.First {
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(filepath.Dir(v.Dir))) })
	}
	return result
}

// Rule: every target has its turn, and the executions of all count.
func TestTargetsTakeTurns(t *testing.T) {
	result := run(t, map[string]string{"FuzzA": works, "FuzzB": works})
	require.Zero(t, result.Violations)
	require.Equal(t, 2*12345, result.Tried)
}

// Rule: a finding of the fuzzer is a violation, and so is a target that does not run. The end
// of the time is none. The other targets still have their turn.
func TestFindingIsSeen(t *testing.T) {
	result := run(t, map[string]string{"FuzzA": fails, "FuzzB": works})
	require.Equal(t, 1, result.Violations)
	require.ErrorContains(t, result.First[0].Err, "p FuzzA")
	require.ErrorContains(t, result.First[0].Err, "planted")
	require.Equal(t, 77+12345, result.Tried)

	result = run(t, map[string]string{"FuzzA": "# p\nit_test.go:1: syntax error\nFAIL p [build failed]\n", "FuzzB": works})
	require.Equal(t, 1, result.Violations)
	require.ErrorContains(t, result.First[0].Err, "syntax error")

	result = run(t, map[string]string{"FuzzA": late, "FuzzB": works})
	require.Zero(t, result.Violations)
	require.Equal(t, 99+12345, result.Tried)
}

// Rule: a target that was never executed does not count as fuzzed, nor does a target whose
// coverage is not measured.
func TestIdleTargetIsSeen(t *testing.T) {
	for says, want := range map[string]string{
		"testing: warning: no fuzz tests to fuzz\nPASS\n": "never executed",
		"warning: the test binary was not built with coverage instrumentation, so fuzzing will run without coverage guidance\n" + works: "without knowing",
	} {
		f := &fuzzing{all: []target{{"p", "", "FuzzA"}}, each: []int{1}, fuzz: func(context.Context, target, int, *rand.Rand) ([]byte, error) {
			return []byte(says), nil
		}}
		family := &harness.Family{Parallel: 1, Prepare: func(*harness.Env) (func(*harness.Try) error, error) { return f.try, nil }}
		result := family.Run(t.Context(), harness.Plan{Goal: 1, Time: time.Minute, Once: true})
		require.Equal(t, 1, result.Violations)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(filepath.Dir(result.First[0].Dir))) })
		require.ErrorContains(t, result.First[0].Err, want)
	}
}

// Rule: inputs of earlier runs that are tried again count too, and a target that tries only
// these is not idle.
func TestBaselineCounts(t *testing.T) {
	require.Equal(t, 283, counted([]byte("fuzz: elapsed: 0s, gathering baseline coverage: 0/530 completed\n"+
		"fuzz: elapsed: 3s, gathering baseline coverage: 283/530 completed\nPASS\n")))
}

// Rule: every fuzz target of the module is found.
func TestTargetsAreFound(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go tool")
	}
	dir, err := harness.Source(t.Context())
	require.NoError(t, err)
	all, err := everyTarget(t.Context(), dir)
	require.NoError(t, err)
	for _, known := range append([]string{
		module + " FuzzGuard", module + " FuzzParseRecord", module + "/bolt FuzzTimeKey", module + "/admin FuzzImport",
	}, costly...) {
		require.True(t, slices.ContainsFunc(all, func(t target) bool { return t.String() == known }), "%s is not among %s", known, all)
	}
	_, err = targets(t.Context(), dir, module+"/internal/torture/harness")
	require.ErrorContains(t, err, "no package")
}

// Rule: a target that had no time for its executions makes up for them, while no other target
// runs.
func TestRestIsMadeUpFor(t *testing.T) {
	f := &fuzzing{all: []target{{"p", "", "FuzzA"}, {"p", "", "FuzzB"}}, each: []int{12345, 12345 + 10}}
	var mu sync.Mutex
	var asked []string
	f.fuzz = func(_ context.Context, next target, executions int, _ *rand.Rand) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, fmt.Sprint(next.name, executions))
		return []byte(works), nil
	}
	family := &harness.Family{Parallel: 1, Prepare: func(*harness.Env) (func(*harness.Try) error, error) { return f.try, nil }}
	result := family.Run(t.Context(), harness.Plan{Goal: 12345*2 + 10, Time: time.Minute})
	require.Zero(t, result.Violations)
	slices.Sort(asked)
	require.Equal(t, []string{"FuzzA12345", "FuzzB10", "FuzzB12355"}, asked)
}

// Rule: a target with costly executions begins first and has a fifth of the executions of
// another one. All together have as many as were asked for.
func TestShares(t *testing.T) {
	cheap, dear := target{"p", "", "FuzzA"}, target{module + "/bolt", "", "FuzzFile"}
	all, each := shares([]target{cheap, dear, cheap}, 1100)
	require.Equal(t, []target{dear, cheap, cheap}, all)
	require.Equal(t, []int{100, 500, 500}, each)
	_, each = shares([]target{cheap, cheap, cheap}, 100)
	require.Equal(t, []int{34, 34, 34}, each, "not one less")
}

// Rule: targets that have not begun share the time that is left on all processors, and a
// target has a second at least.
func TestTimes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	require.InDelta(t, (54*time.Minute/9).Seconds()*float64(min(9, runtime.GOMAXPROCS(0))), timeOf(ctx, 9).Seconds(), 60)
	require.InDelta(t, (54 * time.Minute).Seconds(), timeOf(ctx, 1).Seconds(), 60, "the last one may use one processor only")
	require.Equal(t, time.Second, timeOf(ctx, 1_000_000))
}

// Rule: a run begins with some of what earlier ones found, drawn by its seed, and keeps what
// it finds beside that.
func TestInterestingIsKept(t *testing.T) {
	kept, own := t.TempDir(), filepath.Join(t.TempDir(), "own")
	for i := range 100 {
		require.NoError(t, os.WriteFile(filepath.Join(kept, fmt.Sprint(i)), []byte("go test fuzz v1\n"), 0o600))
	}
	require.NoError(t, copySome(kept, own, 10, rand.New(rand.NewPCG(1, 2))))
	files, err := os.ReadDir(own)
	require.NoError(t, err)
	require.Len(t, files, 10)

	require.NoError(t, os.WriteFile(filepath.Join(own, "new"), []byte("found"), 0o600))
	require.NoError(t, copySome(own, kept, -1, nil))
	found, err := os.ReadFile(filepath.Join(kept, "new"))
	require.NoError(t, err)
	require.Equal(t, "found", string(found))
	files, err = os.ReadDir(kept)
	require.NoError(t, err)
	require.Len(t, files, 101)
	require.NoError(t, copySome(filepath.Join(kept, "none"), own, 10, nil), "nothing was found before")
}
