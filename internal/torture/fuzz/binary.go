package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// instrumented are the packages whose branches guide the fuzzer: the code that reads what a
// file or a caller says. All others, which go test -fuzz would instrument as well, only made
// it slower, and each of their branches is a byte that the fuzzer asks for and compares.
var instrumented = []string{module + "/...", "github.com/vmihailenco/msgpack/...", "go.etcd.io/bbolt/...", "github.com/spf13/..."}

// binaries are the test binaries of packages that have targets, made for fuzzing.
type binaries struct {
	of    map[string]string // by package
	cache string            // where the go tool keeps what it found interesting
	own   string            // the folder of what this run begins with, and finds
	temp  string            // where targets make their files, in memory
}

// build makes them, those of a module together, which has the processors busy.
func build(ctx context.Context, to, temp string, all []target) (b binaries, err error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return b, fmt.Errorf("find the go tool's cache: %w", err)
	}
	b = binaries{make(map[string]string), filepath.Join(strings.TrimSpace(string(out)), "fuzz"), filepath.Join(to, "interesting"), temp}
	folders, packages := make(map[bool]string), make(map[bool][]string)
	for _, t := range all {
		command := strings.HasPrefix(t.pkg, module+"/cmd/jobctl")
		if b.of[t.pkg] == "" {
			folders[command], packages[command] = t.dir, append(packages[command], t.pkg)
			b.of[t.pkg] = filepath.Join(to, path.Base(t.pkg)+".test") // as the go tool names it
		}
	}
	for command, some := range packages {
		args := []string{"test", "-c", harness.Lean, "-o", to + string(filepath.Separator)}
		for _, pattern := range instrumented {
			args = append(args, "-gcflags="+pattern+"=-d=libfuzzer") // as go test -fuzz does
		}
		if err := harness.Build(ctx, folders[command], append(args, some...)...); err != nil { // in its module
			return b, err
		}
	}
	return b, nil
}

// run fuzzes a target as go test -fuzz does, in one process beside the one that mutates.
func (b binaries) run(ctx context.Context, t target, executions int, random *rand.Rand) ([]byte, error) {
	kept, own := filepath.Join(b.cache, filepath.FromSlash(t.pkg)), filepath.Join(b.own, filepath.FromSlash(t.pkg))
	if err := copySome(filepath.Join(kept, t.name), filepath.Join(own, t.name), executions/beginnings, random); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.of[t.pkg], "-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+strconv.Itoa(executions)+"x",
		"-test.parallel=1", "-test.fuzzminimizetime=10x", "-test.fuzzcachedir="+own)
	cmd.Dir = t.dir // where its testdata is
	cmd.Env = append(os.Environ(), "TMPDIR="+b.temp, harness.Collecting())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if copied := copySome(filepath.Join(own, t.name), filepath.Join(kept, t.name), -1, nil); err == nil {
		err = copied
	}
	return out, err
}

// beginnings is how many executions there are for each input that earlier runs found
// interesting: to try one again, with all that it covers, takes as long as a hundred others,
// and thousands are kept in time. Which ones it is, chance decides for each run.
const beginnings = 250

// copySome copies files of a folder, which need not be there, to another one that has them
// not: most of them at the most, chosen at random, and all when most is negative.
func copySome(from, to string, most int, random *rand.Rand) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	files, err := os.ReadDir(from)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if most >= 0 && most < len(files) {
		random.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		files = files[:most]
	}
	for _, f := range files {
		copied := filepath.Join(to, f.Name())
		if _, err := os.Lstat(copied); err == nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err == nil {
			err = os.WriteFile(copied, b, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
