//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package handlers

import "syscall"

// identify returns nothing on these systems.
func identify(int) (start, boot string) { return "", "" }

// survivor is the process group of an attempt.
type survivor struct{ pid int }

// survivors returns the group of the attempt if its lock is held and the group exists. A process
// that left the group is not found, but the job does not run while that process holds the lock.
// One that also closed the descriptor is not noticed.
func survivors(rec record, path string) []survivor {
	if rec.PID > 1 && locked(path) && syscall.Kill(-rec.PID, 0) == nil {
		return []survivor{{rec.PID}}
	}
	return nil
}

// alive reports false: survivors looks each time.
func (s survivor) alive() bool { return false }

func (s survivor) kill() { _ = syscall.Kill(-s.pid, syscall.SIGKILL) }
