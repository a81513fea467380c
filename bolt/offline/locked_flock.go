//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package offline

import (
	"os"
	"syscall"
)

// locked reports whether a process has the file open for writing. It holds the readers' lock for
// a moment; an app that starts at that moment waits for it.
func locked(file string) bool {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false // opening the file reports what is wrong with it
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == syscall.EWOULDBLOCK
}
