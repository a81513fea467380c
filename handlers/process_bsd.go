//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package handlers

import "syscall"

// attributes starts a command in its own session. The kernel cannot end it with its worker
// here; the next runner on the same state folder ends it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitExit reports false: here a child's exit is known only after it was reaped. If nobody is
// left in the child's group, its number could be reused before the group is killed.
func awaitExit(int) bool { return false }

// exited reports false: see awaitExit.
func exited(int) bool { return false }
