package fuzz

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// target is a fuzz target.
type target struct {
	pkg, dir string
	name     string
}

func (t target) String() string { return t.pkg + " " + t.name }

// targets finds those of the packages that a pattern matches, in the order of their names.
func targets(ctx context.Context, dir, pattern string) (all []target, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles", pattern)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	for listed := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := listed.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		for _, file := range append(p.TestGoFiles, p.XTestGoFiles...) {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			for _, m := range declaration.FindAllSubmatch(text, -1) {
				all = append(all, target{p.ImportPath, p.Dir, string(m[1])})
			}
		}
	}
	slices.SortFunc(all, func(a, b target) int { return strings.Compare(a.String(), b.String()) })
	if len(all) == 0 {
		return nil, fmt.Errorf("no package of %s has a fuzz target", pattern)
	}
	return all, nil
}

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// binaries are the test binaries of packages that have targets, made for fuzzing.
type binaries struct {
	of    map[string]string // by package
	cache string            // where the go tool keeps what it found interesting
}

func build(ctx context.Context, to string, all []target) (b binaries, err error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return b, fmt.Errorf("find the go tool's cache: %w", err)
	}
	b = binaries{make(map[string]string), filepath.Join(strings.TrimSpace(string(out)), "fuzz")}
	for _, t := range all {
		if b.of[t.pkg] != "" {
			continue
		}
		binary := filepath.Join(to, fmt.Sprintf("fuzz-%d.test", len(b.of)))
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-fuzz", ".", "-o", binary, ".")
		cmd.Dir = t.dir // in its module
		if out, err := cmd.CombinedOutput(); err != nil {
			return b, fmt.Errorf("build %s: %w: %s", t.pkg, err, out)
		}
		b.of[t.pkg] = binary
	}
	return b, nil
}

// run fuzzes a target as go test -fuzz does.
func (b binaries) run(ctx context.Context, t target, share time.Duration) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.of[t.pkg], "-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+share.String(),
		"-test.fuzzminimizetime=10x", "-test.fuzzcachedir="+filepath.Join(b.cache, filepath.FromSlash(t.pkg)))
	cmd.Dir = t.dir // where its testdata is
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}
