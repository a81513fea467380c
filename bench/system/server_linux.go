package system

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// bind makes the kernel send cmd the signal when this process dies, however it dies. A
// group of its own keeps an interrupt from the keyboard away from it: the benchmark ends
// first, then its servers.
func bind(cmd *exec.Cmd, end syscall.Signal) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = end
	cmd.SysProcAttr.Setpgid = true
}

// processorTime is what a process and its children have used, those that ended included.
func processorTime(pid int) (total time.Duration, err error) {
	parent, err := statTimes(pid)
	if err != nil {
		return 0, err
	}
	for _, t := range parent {
		total += t
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	for _, child := range strings.Fields(string(children)) {
		id, err := strconv.Atoi(child)
		if err != nil {
			return 0, err
		}
		if times, err := statTimes(id); err == nil { // it may end just now
			total += times[0] + times[1]
		}
	}
	return total, nil
}

// statTimes are the times of a process in user and system mode, and those of the children
// that it has waited for.
func statTimes(pid int) (times [4]time.Duration, err error) {
	const ticks = 100 // a second, for every program on Linux
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return times, err
	}
	// The name of the program is in parentheses, and may have spaces. Behind it is field 3;
	// the times are fields 14 to 17.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for i := range times {
		n, err := strconv.ParseInt(fields[i+11], 10, 64)
		if err != nil {
			return times, err
		}
		times[i] = time.Duration(n) * time.Second / ticks
	}
	return times, nil
}

// unprivileged makes cmd, which refuses to run as root, run as another user if this is
// root, and gives that user the folder.
func unprivileged(dir string, cmds ...*exec.Cmd) error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres") // made by the package of Debian
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		return err
	}
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("the user %s cannot pass %s: chmod o+x, or run without root", u.Username, parent)
		}
		if parent == filepath.Dir(parent) {
			break
		}
	}
	for _, cmd := range cmds {
		cmd.Dir = dir // a folder that the user may enter
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
		}
	}
	return nil
}
