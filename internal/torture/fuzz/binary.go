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

// instrumented are the packages whose branches guide the fuzzer: the code that reads data
// from a file or a caller. go test -fuzz would also instrument all other packages. That only
// makes the fuzzer slower, since it reads and compares a byte for each branch.
var instrumented = []string{module + "/...", "github.com/vmihailenco/msgpack/...", "go.etcd.io/bbolt/...", "github.com/spf13/..."}

// plain are packages of the module that only test others. They are large, and the compiler takes longer for
// an instrumented package.
var plain = []string{module + "/queuetest", module + "/internal/scenario"}

// binaries are the test binaries, built for fuzzing, of the packages with targets.
type binaries struct {
	of    map[string]string // by package
	cache string            // where the go tool keeps interesting inputs
	own   string            // the folder of the inputs that this run begins with or finds
	temp  string            // where targets make their files, in memory
}

// build builds the binaries. It builds those of a module together, which uses all
// processors.
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
			b.of[t.pkg] = filepath.Join(to, path.Base(t.pkg)+".test") // the name that the go tool gives it
		}
	}
	for command, some := range packages {
		// Without their paths, what is compiled serves other checkouts too.
		args := []string{"test", "-c", "-vet=off", "-trimpath", harness.Lean, "-o", to + string(filepath.Separator)}
		for _, pattern := range instrumented {
			args = append(args, "-gcflags="+pattern+"=-d=libfuzzer") // as go test -fuzz does
		}
		for _, pattern := range plain {
			args = append(args, "-gcflags="+pattern+"=") // the last pattern counts
		}
		if err := harness.Build(ctx, folders[command], append(args, some...)...); err != nil { // built in its module
			return b, err
		}
	}
	return b, nil
}

// run fuzzes a target as go test -fuzz does, with one worker process besides the process
// that mutates inputs.
func (b binaries) run(ctx context.Context, t target, executions int, random *rand.Rand) ([]byte, error) {
	kept, own := filepath.Join(b.cache, filepath.FromSlash(t.pkg)), filepath.Join(b.own, filepath.FromSlash(t.pkg))
	if err := copySome(filepath.Join(kept, t.name), filepath.Join(own, t.name), executions/beginnings, random); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.of[t.pkg], "-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+strconv.Itoa(executions)+"x",
		"-test.parallel=1", "-test.fuzzminimizetime=10x", "-test.fuzzcachedir="+own)
	cmd.Dir = t.dir // the folder with its testdata
	cmd.Env = append(os.Environ(), "TMPDIR="+b.temp, harness.Collecting())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if copied := copySome(filepath.Join(own, t.name), filepath.Join(kept, t.name), -1, nil); err == nil {
		err = copied
	}
	return out, err
}

// beginnings is the number of executions for each input from earlier runs that a run begins
// with. Trying such an input again, and measuring its coverage, takes as long as a hundred
// other executions, and the cache grows to thousands of inputs. Each run chooses its inputs
// at random.
const beginnings = 250

// copySome copies up to most files of a folder, chosen at random, to another folder that
// does not have them. A negative most means all files. The first folder may be missing.
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
