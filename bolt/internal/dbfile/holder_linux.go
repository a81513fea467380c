package dbfile

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// lockHolder returns the process that holds the lock of the file, for an error message: " (pid
// 4121, billing-api)", or "" if the system does not report it.
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
	//
	// Some file systems have a different device number here than in stat, and other devices
	// have files with the same inode number, so prefer an exact match.
	inode := fmt.Sprintf(":%d", stat.Ino)
	file := fmt.Sprintf("%02x:%02x%s", major(uint64(stat.Dev)), minor(uint64(stat.Dev)), inode)
	pid := ""
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[1] != "FLOCK" || f[4] == "0" || f[4] == "-1" {
			continue
		}
		if f[5] == file {
			pid = f[4]
			break
		}
		if strings.HasSuffix(f[5], inode) {
			pid = f[4]
		}
	}
	if pid == "" {
		return ""
	}
	if pid == strconv.Itoa(os.Getpid()) {
		return " (by this very process, which has it open already: share that *Queue)"
	}
	comm, err := os.ReadFile("/proc/" + pid + "/comm")
	if err != nil {
		return fmt.Sprintf(" (pid %s)", pid)
	}
	return fmt.Sprintf(" (pid %s, %s)", pid, strings.TrimSpace(string(comm)))
}

// Device numbers as the kernel packs them for stat.
func major(dev uint64) uint64 { return dev>>8&0xfff | dev>>32&^0xfff }
func minor(dev uint64) uint64 { return dev&0xff | dev>>12&^0xff }

func isReadOnlyDisk(err error) bool { return errors.Is(err, syscall.EROFS) }
