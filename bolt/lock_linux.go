package bolt

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// lockHolder names the process that holds the lock of the file, for an error
// message: " (pid 4121, billing-api)", or nothing when the system does not tell.
func lockHolder(path string) string {
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		return ""
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer locks.Close()
	// 1: FLOCK  ADVISORY  WRITE 4121 08:01:1048602 0 EOF
	inode := fmt.Sprintf(":%d", stat.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], inode) || f[4] == "0" || f[4] == "-1" {
			continue
		}
		comm, err := os.ReadFile("/proc/" + f[4] + "/comm")
		if err != nil {
			return fmt.Sprintf(" (pid %s)", f[4])
		}
		return fmt.Sprintf(" (pid %s, %s)", f[4], strings.TrimSpace(string(comm)))
	}
	return ""
}

func isReadOnlyDisk(err error) bool { return errors.Is(err, syscall.EROFS) }
