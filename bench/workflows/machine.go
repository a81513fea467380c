package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// machine is where a run took place, as far as it matters to the figures.
type machine struct {
	processor, memory, kernel, load, fileSystem string

	sync time.Duration // of 4 KiB
}

// inspect looks at the machine and at the disk of a folder. What it does not find is
// empty.
func inspect(disk string) (machine, error) {
	m := machine{
		processor:  field("/proc/cpuinfo", "model name"),
		kernel:     version(content("/proc/sys/kernel/osrelease")),
		fileSystem: fileSystem(disk),
	}
	kilobytes, _, _ := strings.Cut(field("/proc/meminfo", "MemTotal"), " ")
	if n, err := strconv.ParseInt(kilobytes, 10, 64); err == nil {
		m.memory = fmt.Sprintf("%.1f GiB", float64(n)/(1<<20))
	}
	if m.fileSystem == "tmpfs" {
		m.fileSystem += ", in memory: a sync costs nothing there, and these figures mean little"
	}
	var err error
	m.sync, err = syncTime(disk)
	return m, err
}

func (m machine) markdown(w io.Writer) {
	orUnknown := func(s string) string {
		if s == "" {
			return "unknown"
		}
		return s
	}
	fmt.Fprint(w, "## The machine\n\n")
	markdownTable(w, "ll", [][]string{
		{"", ""},
		{"processor", fmt.Sprintf("%s, %s", orUnknown(m.processor), runtime.GOARCH)},
		{"cores", strconv.Itoa(runtime.NumCPU())},
		{"memory", orUnknown(m.memory)},
		{"system", strings.TrimSpace(runtime.GOOS + " " + m.kernel)},
		{"Go", strings.TrimPrefix(runtime.Version(), "go")},
		{"load before the run", orUnknown(m.load)},
		{"file system", orUnknown(m.fileSystem)},
		{"sync of 4 KiB", number(float64(m.sync)/float64(time.Microsecond)) + " µs, the median of 100 at the end of the run"},
	})
}

// syncTime is the median time in which a page of a file is written and synced. The file
// has its size before, as that of a queue mostly has.
func syncTime(dir string) (time.Duration, error) {
	const page, rounds = 4 << 10, 100
	f, err := os.CreateTemp(dir, "pawl-workflows-sync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(make([]byte, page*rounds)); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	buf := make([]byte, page)
	var all []time.Duration
	for i := range rounds {
		buf[0] = byte(i + 1)
		began := time.Now()
		if _, err := f.WriteAt(buf, int64(i)*page); err != nil {
			return 0, err
		}
		if err := syncData(f); err != nil {
			return 0, err
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return percentile(all, 50), nil
}

// field is what stands behind a name and a colon in a file of such lines.
func field(path, name string) string {
	for line := range strings.Lines(content(path)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// loadAverage is how many processes ran or waited for a disk in the last minute, in the mean.
func loadAverage() string {
	first, _, _ := strings.Cut(content("/proc/loadavg"), " ")
	return first
}

// content is empty where there is no such file, as there is none outside Linux.
func content(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

// version is that of a kernel without what its builder put behind it.
func version(release string) string {
	v, _, _ := strings.Cut(strings.TrimSpace(release), "-")
	return v
}
