//go:build unix

package handlers

import "syscall"

// atEOF reports whether the other end of a socket that does not block is closed.
func atEOF(fd uintptr) bool {
	n, err := syscall.Read(int(fd), make([]byte, 1))
	return n == 0 && err == nil
}

func setsid() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func closeOnExec(fd int) { syscall.CloseOnExec(fd) }

func ownKill(s syscall.Signal) { _ = syscall.Kill(syscall.Getpid(), s) }

func stateOf(r *Runner) string { return r.state.dir }

// bePatient has a runner wait for what it has killed as long as a test waits: a machine that
// is busy takes its time.
func bePatient(r *Runner) { r.state.timeout = testTimeout }
