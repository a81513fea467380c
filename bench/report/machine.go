package report

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Machine describes the machine of a run.
type Machine struct {
	Processor, Memory, Kernel, FileSystem string

	Load string        // load average before the run, or ""
	Sync time.Duration // of 4 KiB
}

// Inspect describes this machine and the disk of a folder. Unknown fields are empty.
func Inspect(disk string) (Machine, error) {
	m := Machine{
		Processor:  Field("/proc/cpuinfo", "model name"),
		Kernel:     version(content("/proc/sys/kernel/osrelease")),
		FileSystem: fileSystem(disk),
	}
	kilobytes, _, _ := strings.Cut(Field("/proc/meminfo", "MemTotal"), " ")
	if n, err := strconv.ParseInt(kilobytes, 10, 64); err == nil {
		m.Memory = fmt.Sprintf("%.1f GiB", float64(n)/(1<<20))
	}
	if m.FileSystem == "tmpfs" {
		m.FileSystem += ", in memory: syncs cost nothing there, so these figures mean little"
	}
	var err error
	m.Sync, err = syncTime(disk)
	return m, err
}

// Markdown writes the section about the machine.
func (m Machine) Markdown(w io.Writer) {
	orUnknown := func(s string) string {
		if s == "" {
			return "unknown"
		}
		return s
	}
	fmt.Fprint(w, "## The machine\n\n")
	rows := [][]string{
		{"", ""},
		{"processor", fmt.Sprintf("%s, %s", orUnknown(m.Processor), runtime.GOARCH)},
		{"cores", strconv.Itoa(runtime.NumCPU())},
		{"memory", orUnknown(m.Memory)},
		{"system", strings.TrimSpace(runtime.GOOS + " " + m.Kernel)},
		{"Go", strings.TrimPrefix(runtime.Version(), "go")},
		{"bbolt", orUnknown(libraryVersion("go.etcd.io/bbolt"))},
		{"file system", orUnknown(m.FileSystem)},
		{"sync of 4 KiB", Number(float64(m.Sync)/float64(time.Microsecond)) + " µs, the median of 100 at the end of the run"},
	}
	if m.Load != "" {
		rows = append(rows, []string{"load before the run", m.Load})
	}
	Table(w, "ll", rows)
}

// LoadAverage returns the machine's load average of the last minute, or "".
func LoadAverage() string {
	first, _, _ := strings.Cut(content("/proc/loadavg"), " ")
	return first
}

// syncTime returns the median time to write and sync a page of a file that does not grow.
func syncTime(dir string) (time.Duration, error) {
	const page, rounds = 4 << 10, 100
	f, err := os.CreateTemp(dir, "pawl-bench-sync-")
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
	return Percentile(all, 50), nil
}

// Field returns the value of a "name: value" line in a file, or "".
func Field(path, name string) string {
	for line := range strings.Lines(content(path)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// content returns the content of a file, or "" if it does not exist, as outside Linux.
func content(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

func libraryVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return ""
}

// version returns the version of a kernel without its build suffix.
func version(release string) string {
	v, _, _ := strings.Cut(strings.TrimSpace(release), "-")
	return v
}
