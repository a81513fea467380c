//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package handlers

import "syscall"

// identify knows nothing here.
func identify(int) (start, boot string) { return "", "" }

// survivor is the group of a run.
type survivor struct{ pid int }

// survivors is the group of the run, while somebody holds the lock of the run and there is
// such a group. A process that has left the group is not found, but as long as it has the
// lock the job does not run; one that has closed that too is not noticed.
func survivors(rec record, path string) []survivor {
	if rec.PID > 1 && locked(path) && syscall.Kill(-rec.PID, 0) == nil {
		return []survivor{{rec.PID}}
	}
	return nil
}

// alive reports false: survivors says it each time.
func (s survivor) alive() bool { return false }

func (s survivor) kill() { _ = syscall.Kill(-s.pid, syscall.SIGKILL) }
