package report

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// syncData syncs a file as a commit of bbolt does.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// fileSystem returns the type of the file system of a folder: that of the deepest mount above it, and
// of the last one if several are equally deep.
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
