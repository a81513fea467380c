package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func freeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// dropCache has the system forget the pages of a file, which are synced.
func dropCache(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// bytesWritten is what this process gave to write calls so far.
func bytesWritten() (int64, error) {
	return procField("/proc/self/io", "wchar")
}

// usageOf adds up the threads of a process. Those that ended are missing, but an idle
// process of Go keeps its threads.
func usageOf(pid int) (u usage, err error) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return u, err
	}
	for _, thread := range threads {
		dir := fmt.Sprintf("/proc/%d/task/%s/", pid, thread.Name())
		switches, err := procField(dir+"status", "voluntary_ctxt_switches")
		if err != nil {
			return u, err
		}
		// The first number is the time on a CPU in nanoseconds. In stat it would be in
		// hundredths of a second, of which an idle process may use less than one.
		stat, err := os.ReadFile(dir + "schedstat")
		if err != nil {
			return u, err
		}
		first, _, _ := strings.Cut(string(stat), " ")
		cpu, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return u, err
		}
		u.switches += switches
		u.cpu += time.Duration(cpu)
	}
	u.at = time.Now()
	return u, nil
}

// procField reads a number from a file of lines like "name: number".
func procField(path, name string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && key == name {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, name)
}
