package workflows

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// syncCalls are all calls by which a process can ask for data to be on the disk.
const syncCalls = "fsync,fdatasync,sync_file_range,msync,sync,syncfs"

// tracer is the words that run a command with its calls of sync written to a file. Only
// these calls stop the command (--seccomp-bpf), so that it is hardly slower for it.
func tracer(file string) ([]string, error) {
	path, err := exec.LookPath("strace")
	if err != nil {
		return nil, errors.New("strace is not installed")
	}
	return []string{path, "-f", "--seccomp-bpf", "-qq", "-e", "trace=" + syncCalls, "-e", "signal=none", "-o", file}, nil
}

// startTraced runs the trial in a child and counts the syncs in its window.
func (t trial) startTraced(ctx context.Context, dir string) (f figures, syncs int, err error) {
	log := filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".strace")
	words, err := tracer(log)
	if err != nil {
		return f, 0, err
	}
	defer os.Remove(log)
	if f, err = t.start(ctx, dir, words...); err != nil {
		return f, 0, err
	}
	file, err := os.Open(log)
	if err != nil {
		return f, 0, err
	}
	defer file.Close()
	syncs, err = countSyncs(file)
	return f, syncs, err
}

var (
	syncLine = regexp.MustCompile(`^\s*(?:\d+\s+)?(?:fsync|fdatasync|sync_file_range|msync|sync|syncfs)\(`)
	markLine = regexp.MustCompile(`^\s*(?:\d+\s+)?fsync\(-1`)
)

// countSyncs counts the calls between the first two marks of a trace. An interrupted call takes two
// lines; the second begins differently.
func countSyncs(trace io.Reader) (int, error) {
	marks, syncs := 0, 0
	lines := bufio.NewScanner(trace)
	for lines.Scan() {
		switch line := lines.Bytes(); {
		case markLine.Match(line):
			marks++
		case marks == 1 && syncLine.Match(line):
			syncs++
		}
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	if marks != 2 {
		return 0, fmt.Errorf("the trace has %d marks, not 2", marks)
	}
	return syncs, nil
}
