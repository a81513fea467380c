package command

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// stores are the modules in which queues store their data.
var stores = map[string]string{"go.etcd.io/bbolt": "bbolt", "github.com/jackc/pgx/v5": "pgx"}

// machine describes the machine of a run in one sentence.
func machine() string {
	parts := []string{
		fmt.Sprintf("%s/%s", runtime.GOOS, runtime.GOARCH),
		fmt.Sprintf("%d cores", runtime.NumCPU()),
		strings.Replace(runtime.Version(), "go", "Go ", 1),
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		number, _, _ := strings.Cut(strings.TrimSpace(string(kernel)), "-")
		parts[0] += " " + number
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if name := stores[m.Path]; name != "" {
				parts = append(parts, name+" "+strings.TrimPrefix(m.Version, "v"))
			}
		}
	}
	return strings.Join(parts, ", ")
}
