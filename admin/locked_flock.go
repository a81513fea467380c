//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package admin

import (
	"os"
	"syscall"
)

// locked reports whether a process has the file open to write. It holds the lock for readers
// for a moment; an app that starts just then waits for that.
func locked(file string) bool {
	f, err := os.OpenFile(file, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return false // what is wrong with the file, opening it says
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == syscall.EWOULDBLOCK
}
