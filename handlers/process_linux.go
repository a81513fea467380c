package handlers

import "syscall"

// attributes gives a command a session of its own, and has the kernel kill its first
// process when the thread that starts it dies, thus also when the worker is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// Of linux/wait.h; the same on all architectures.
const (
	idTypePID = 1
	wExited   = 0x4
	wNoWait   = 0x1000000
)

// awaitExit waits until a child has ended, without reaping it, and reports whether it
// could: until it is reaped its number, and that of its group, belong to nobody else.
func awaitExit(pid int) bool { return waitid(pid, wExited|wNoWait) == 0 }

// exited reports whether a child that was not reaped has ended. Waitid answers both alike
// without a place for what it found, so the state of the process is read.
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
