package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// mark is seen by who traces the syncs of this process: a sync of no file, which fails. It
// tells where the window begins and ends.
func mark() { _ = syscall.Fsync(-1) }

// processorTime is what this process used so far.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// peakMemory is the most that this process had in memory, pages of mapped files included.
func peakMemory() (int64, error) {
	text, _, _ := strings.Cut(field("/proc/self/status", "VmHWM"), " ")
	kilobytes, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the peak of memory: %w", err)
	}
	return kilobytes << 10, nil
}

// syncData does to a file what a commit of bbolt does.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// fileSystem is the kind of the one that a folder lies on: of all mounts above the folder
// the deepest, and of those the last, which hides the others.
func fileSystem(dir string) string {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return ""
	}
	kind, deepest := "", ""
	for line := range strings.Lines(content("/proc/self/mountinfo")) {
		mount, source, ok := strings.Cut(line, " - ")
		fields, kinds := strings.Fields(mount), strings.Fields(source)
		if !ok || len(fields) < 5 || len(kinds) == 0 {
			continue
		}
		above := strings.ReplaceAll(fields[4], `\040`, " ")
		inside := above == "/" || dir == above || strings.HasPrefix(dir, above+"/")
		if inside && len(above) >= len(deepest) {
			kind, deepest = kinds[0], above
		}
	}
	return kind
}
