//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package handlers

import "syscall"

// attributes gives a command a session of its own. There is nothing here by which the
// kernel would end it together with its worker: the next runner on the same state folder
// ends it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitExit reports false: a child's end is known here only once it was reaped. In the
// moment until its group is killed the number of that group could be given anew, if nobody
// is left in it.
func awaitExit(int) bool { return false }

// exited reports false: see awaitExit.
func exited(int) bool { return false }
