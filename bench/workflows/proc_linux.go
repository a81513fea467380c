package workflows

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gopawl/pawl/bench/report"
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
	text, _, _ := strings.Cut(report.Field("/proc/self/status", "VmHWM"), " ")
	kilobytes, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the peak of memory: %w", err)
	}
	return kilobytes << 10, nil
}
