package fuzz

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

const module = harness.Module

// Fuzz runs every fuzz target of the module by the go tool. Its unit is one execution of a
// target. What the fuzzer finds it keeps where the go tool puts it: under testdata/fuzz of
// the package, so that every later test tries it again.
var Fuzz = &harness.Family{
	Name:  "fuzz",
	Goals: "R11",
	Method: "every fuzz target of the library and the command, by go test -fuzz: records, rows, keys and their " +
		"order, payloads, pages, exports, arguments of jobctl",
	Unit: "executions",
	PR:   500_000, Nightly: 100_000_000, Share: 75,
	Parallel: 1, // one try gives all targets their executions
	Missing:  harness.MissingSource,
	Prepare:  prepare,
}

// costly are the targets whose execution is a whole file or a whole command: some
// hundred times the work of another one. Such a target has a fifth of the executions.
var costly = []string{module + "/bolt FuzzFile", module + "/internal/pages FuzzCheck", module + "/cmd/jobctl FuzzArguments"}

// fuzzing is a run of the family.
type fuzzing struct {
	all  []target // those that are costly first
	each []int    // how many executions they still need
	fuzz func(ctx context.Context, t target, executions int, random *rand.Rand) (out []byte, err error)
}

// prepare finds the targets and builds them.
func prepare(env *harness.Env) (func(*harness.Try) error, error) {
	dir, err := harness.Source(env.Ctx)
	if err != nil {
		return nil, err
	}
	all, err := everyTarget(env.Ctx, dir)
	if err != nil {
		return nil, err
	}
	b, err := build(env.Ctx, env.Disk, env.Dir, all)
	if err != nil {
		return nil, err
	}
	f := &fuzzing{fuzz: b.run}
	f.all, f.each = shares(all, env.Goal)
	return f.try, nil
}

// everyTarget finds those of the library and of the command, which is a module of its own.
func everyTarget(ctx context.Context, dir string) ([]target, error) {
	all, err := targets(ctx, dir, module+"/...")
	if err != nil {
		return nil, err
	}
	command, err := targets(ctx, filepath.Join(dir, "cmd", "jobctl"), module+"/cmd/jobctl/...")
	return append(all, command...), err
}

// shares is how many of so many executions each target has. Those that are costly come
// first: nothing is left over then that one processor does while the other one waits.
func shares(all []target, executions int) (sorted []target, each []int) {
	weight := func(t target) int {
		if slices.Contains(costly, t.String()) {
			return 1
		}
		return 5
	}
	sorted = slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b target) int { return weight(a) - weight(b) })
	sum := 0
	for _, t := range all {
		sum += weight(t)
	}
	for _, t := range sorted {
		each = append(each, (executions*weight(t)+sum-1)/sum)
	}
	return sorted, each
}

// timeOf is how long a target may take until ctx ends, when so many have not begun, its own
// among them, and as many run at a time as there are processors. A tenth is for them to begin
// and to end. What one leaves over is for those that come.
func timeOf(ctx context.Context, left int) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(2 * time.Minute)
	}
	return max(time.Second, time.Until(end)*9/10*time.Duration(min(left, runtime.GOMAXPROCS(0)))/time.Duration(left))
}

// try gives each target its executions, and none goes without because another one is slow.
func (f *fuzzing) try(t *harness.Try) error {
	t.Count(0)
	var running sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, next := range f.all {
		if f.each[i] <= 0 { // a try before this one had the time
			continue
		}
		slots <- struct{}{}
		if t.Ctx.Err() != nil {
			break
		}
		limit, random := timeOf(t.Ctx, len(f.all)-i), rand.New(rand.NewPCG(t.Rand.Uint64(), 0))
		running.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(t.Ctx, limit)
			defer cancel()
			f.each[i] -= f.one(ctx, t, next, f.each[i], random)
		})
	}
	running.Wait()
	return nil
}

// one fuzzes a target, until it had its executions or its time, and returns how many it had.
func (f *fuzzing) one(ctx context.Context, t *harness.Try, next target, executions int, random *rand.Rand) int {
	out, err := f.fuzz(ctx, next, executions, random)
	n := counted(out)
	err = outcome(next, out, err, ctx.Err() != nil)
	switch {
	case err != nil || ctx.Err() != nil:
	case n == 0:
		err = fmt.Errorf("%s was never executed: %s", next, out)
	case bytes.Contains(out, []byte(blind)):
		err = fmt.Errorf("%s was fuzzed without knowing what it executes: %s", next, out)
	}
	if err != nil {
		t.Violate(err)
	}
	t.Count(n)
	return n
}

// blind is what the fuzzer says of a binary that does not tell which of its branches run.
const blind = "not built with coverage instrumentation"

// executions matches the totals that the fuzzer prints every few seconds. It begins with those
// of what it found interesting before.
var executions = regexp.MustCompile(`execs: (\d+) |coverage: (\d+)/\d+ completed`)

// counted returns the last total of executions that the fuzzer printed.
func counted(out []byte) (n int) {
	for _, m := range executions.FindAllSubmatch(out, -1) {
		n, _ = strconv.Atoi(string(m[1]) + string(m[2]))
	}
	return n
}

// outcome is what the fuzzer found. When it was interrupted, or time was up while it was at
// work, it ends with an error as well, which is not the target's fault.
func outcome(t target, out []byte, err error, interrupted bool) error {
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(string(out))
	if (interrupted || strings.Contains(text, "context deadline exceeded")) && !strings.Contains(text, "Failing input written") {
		return nil
	}
	if at := strings.Index(text, "--- FAIL"); at >= 0 {
		text = text[at:]
	}
	return fmt.Errorf("%s: %w: %s", t, err, text)
}
