package fuzz

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

const module = "github.com/gopawl/pawl"

// Fuzz runs every fuzz target of the module by the go tool. Its unit is one execution of a
// target. What the fuzzer finds it keeps where the go tool puts it: under testdata/fuzz of
// the package, so that every later test tries it again.
var Fuzz = &harness.Family{
	Name:   "fuzz",
	Goals:  "R11",
	Method: "every fuzz target of library and command, by go test -fuzz: records, rows, keys and their order, payloads, pages, exports, arguments of jobctl",
	Unit:   "executions",
	PR:     500_000, Nightly: 100_000_000, Share: 90,
	Parallel: 1, // a target has all processors, and all have had their share in one try
	Missing:  func() string { return missing(context.Background()) },
	Prepare:  prepare,
}

// missing says what is lacking to fuzz, which takes the source and a go tool that fits.
func missing(ctx context.Context) string {
	if _, err := exec.LookPath("go"); err != nil {
		return "needs the go tool"
	}
	if _, err := source(ctx); err != nil {
		return "needs the source of the module: run it in its folder"
	}
	return ""
}

// source is the folder of the module.
func source(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", err
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", errors.New("the module has no folder")
	}
	return dir, nil
}

// fuzzing is a run of the family.
type fuzzing struct {
	all   []target
	share time.Duration // of each
	fuzz  func(ctx context.Context, t target, share time.Duration) (out []byte, err error)
}

// prepare finds the targets and builds them.
func prepare(env *harness.Env) (func(*harness.Try) error, error) {
	dir, err := source(env.Ctx)
	if err != nil {
		return nil, err
	}
	all, err := everyTarget(env.Ctx, dir)
	if err != nil {
		return nil, err
	}
	b, err := build(env.Ctx, env.Disk, all)
	switch {
	case env.Ctx.Err() != nil: // building for the first time takes a minute or more
		return func(t *harness.Try) error { return t.Ctx.Err() }, nil
	case err != nil:
		return nil, err
	}
	f := &fuzzing{all: all, share: shareOf(env.Ctx, len(all)), fuzz: b.run}
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

// shareOf is how long each of n targets may take until ctx ends. A tenth is for them to
// begin and to end.
func shareOf(ctx context.Context, n int) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(2 * time.Minute)
	}
	return max(time.Second, time.Until(end)*9/10/time.Duration(n)).Round(time.Millisecond)
}

// try gives each target its share: none goes without because another one was fast.
func (f *fuzzing) try(t *harness.Try) error {
	t.Count(0)
	for _, next := range f.all {
		if t.Ctx.Err() != nil {
			break
		}
		out, err := f.fuzz(t.Ctx, next, f.share)
		n := counted(out)
		err = outcome(next, out, err, t.Ctx.Err() != nil)
		if err == nil && n == 0 && t.Ctx.Err() == nil {
			err = fmt.Errorf("%s was never executed: %s", next, out)
		}
		if err != nil {
			t.Violate(err)
		}
		t.Count(n)
	}
	return nil
}

// executions are told by the fuzzer every few seconds, in all so far. It begins with those
// of what it found interesting before.
var executions = regexp.MustCompile(`execs: (\d+) |coverage: (\d+)/\d+ completed`)

// counted is how many executions the fuzzer told last.
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
