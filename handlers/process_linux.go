package handlers

import "syscall"

// attributes starts a command in its own session. The kernel kills its first process when the
// thread that started it dies, and so when the worker is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// From linux/wait.h; the same on all architectures.
const (
	idTypePID = 1
	wExited   = 0x4
	wNoWait   = 0x1000000
)

// awaitExit waits until a child has exited, without reaping it, and reports whether that
// worked. Until it is reaped, its process and group numbers are not reused.
func awaitExit(pid int) bool { return waitid(pid, wExited|wNoWait) == 0 }

// exited reports whether an unreaped child has exited.
func exited(pid int) bool {
	s, err := readStat(pid)
	return err == nil && s.over()
}

func waitid(pid int, options uintptr) syscall.Errno {
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idTypePID, uintptr(pid), 0, options, 0, 0)
		if errno != syscall.EINTR {
			return errno
		}
	}
}
