package system

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
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
