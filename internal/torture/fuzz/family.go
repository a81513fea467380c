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

// Fuzz runs every fuzz target of the module. Its unit is one execution of a target. It
// keeps inputs that fail where the go tool puts them, under testdata/fuzz of the package,
// so that every later test tries them again.
var Fuzz = &harness.Family{
	Name:  "fuzz",
	Goals: "R11",
	Method: "every fuzz target of the library and the command, by go test -fuzz: records, rows, keys and their " +
		"order, payloads, pages, exports, arguments of jobctl",
	Unit: "executions",
	PR:   500_000, Nightly: 100_000_000, Share: 75,
	Parallel: 1, // one try runs all targets
	Missing:  harness.MissingSource,
	Prepare:  prepare,
}

// costly are the targets that execute on a whole file or a whole command, which takes some
// hundred times as long as for another target. A costly target gets a fifth of the executions.
var costly = []string{module + "/bolt FuzzFile", module + "/internal/pages FuzzCheck", module + "/cmd/jobctl FuzzArguments"}

// fuzzing is a run of the family.
type fuzzing struct {
	all  []target // costly targets first
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

// everyTarget finds the targets of the library and of the command, which is a separate module.
func everyTarget(ctx context.Context, dir string) ([]target, error) {
	all, err := targets(ctx, dir, module+"/...")
	if err != nil {
		return nil, err
	}
	command, err := targets(ctx, filepath.Join(dir, "cmd", "jobctl"), module+"/cmd/jobctl/...")
	return append(all, command...), err
}

// shares distributes a number of executions over the targets. Costly targets come first, so
// that no processor waits at the end while another one works on a costly target.
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

// timeOf returns how long the next target may take, so that all targets end before ctx does.
// Left is how many targets have not begun, including this one. As many run at the same time
// as there are processors. A tenth of the time is for starting and ending them. Time that a
// target does not use is for later targets.
func timeOf(ctx context.Context, left int) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(2 * time.Minute)
	}
	return max(time.Second, time.Until(end)*9/10*time.Duration(min(left, runtime.GOMAXPROCS(0)))/time.Duration(left))
}

// try gives each target its executions. A slow target does not take the time of the others.
func (f *fuzzing) try(t *harness.Try) error {
	t.Count(0)
	var running sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, next := range f.all {
		if f.each[i] <= 0 { // an earlier try has done them
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

// one fuzzes a target until it has used its executions or its time, and returns how many
// executions it had.
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

// blind is what the fuzzer prints for a binary that does not report which branches run.
const blind = "not built with coverage instrumentation"

// executions matches the totals that the fuzzer prints every few seconds. The first totals are
// for the inputs that it found interesting earlier.
var executions = regexp.MustCompile(`execs: (\d+) |coverage: (\d+)/\d+ completed`)

// counted returns the last total of executions that the fuzzer printed.
func counted(out []byte) (n int) {
	for _, m := range executions.FindAllSubmatch(out, -1) {
		n, _ = strconv.Atoi(string(m[1]) + string(m[2]))
	}
	return n
}

// outcome is what the fuzzer found. The fuzzer also ends with an error when it is interrupted
// or runs out of time. That is not the target's fault.
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
