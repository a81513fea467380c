package fuzz

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// run has a family of two targets say what the go tool would.
func run(t *testing.T, says map[string]string) harness.Result {
	t.Helper()
	f := &fuzzing{all: []target{{"p", "", "FuzzA"}, {"p", "", "FuzzB"}}, share: time.Second}
	f.fuzz = func(_ context.Context, next target, share time.Duration) (out []byte, err error) {
		require.Equal(t, time.Second, share)
		out = []byte(says[next.name])
		if says[next.name] != works {
			err = errors.New("exit status 1")
		}
		return out, err
	}
	family := *Fuzz
	family.Missing = nil
	family.Prepare = func(*harness.Env) (func(*harness.Try) error, error) { return f.try, nil }
	result := family.Run(t.Context(), harness.Plan{Goal: 1, Until: time.Now().Add(time.Minute), Once: true})
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

// Rule: what the fuzzer finds is a violation, as is a target that does not run; that time
// was up is none. The other targets have their turn all the same.
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

// Rule: a target that was never executed is not a target that was fuzzed.
func TestIdleTargetIsSeen(t *testing.T) {
	f := &fuzzing{all: []target{{"p", "", "FuzzA"}}, fuzz: func(context.Context, target, time.Duration) ([]byte, error) {
		return []byte("testing: warning: no fuzz tests to fuzz\nPASS\n"), nil
	}}
	family := &harness.Family{Parallel: 1, Prepare: func(*harness.Env) (func(*harness.Try) error, error) { return f.try, nil }}
	result := family.Run(t.Context(), harness.Plan{Goal: 1, Until: time.Now().Add(time.Minute), Once: true})
	require.Equal(t, 1, result.Violations)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(filepath.Dir(result.First[0].Dir))) })
	require.ErrorContains(t, result.First[0].Err, "never executed")
}

// Rule: what is tried again of earlier runs counts too, and is no idle target.
func TestBaselineCounts(t *testing.T) {
	require.Equal(t, 283, counted([]byte("fuzz: elapsed: 0s, gathering baseline coverage: 0/530 completed\n"+
		"fuzz: elapsed: 3s, gathering baseline coverage: 283/530 completed\nPASS\n")))
}

// Rule: every fuzz target of the module is found.
func TestTargetsAreFound(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go tool")
	}
	dir, err := source(t.Context())
	require.NoError(t, err)
	all, err := everyTarget(t.Context(), dir)
	require.NoError(t, err)
	for _, known := range []target{
		{pkg: module, name: "FuzzGuard"}, {pkg: module, name: "FuzzParseRecord"},
		{pkg: module + "/bolt", name: "FuzzTimeKey"}, {pkg: module + "/cmd/jobctl", name: "FuzzArguments"},
		{pkg: module + "/admin", name: "FuzzImport"},
	} {
		found := slices.ContainsFunc(all, func(t target) bool { return t.pkg == known.pkg && t.name == known.name })
		require.True(t, found, "%s is not among %s", known, all)
	}
	_, err = targets(t.Context(), dir, module+"/internal/torture/harness")
	require.ErrorContains(t, err, "no package")
}

// Rule: time is shared evenly, and a target has a second at least.
func TestShare(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	require.InDelta(t, (54 * time.Minute / 9).Seconds(), shareOf(ctx, 9).Seconds(), 60)
	require.Equal(t, time.Second, shareOf(ctx, 1_000_000))
}
