//go:build !linux

package system

import (
	"os/exec"
	"syscall"
)

// Where the kernel does not tie a child to its parent, only Stop ends the servers.
func bind(*exec.Cmd, syscall.Signal) {}

// Where this is root, the program says itself that it refuses.
func unprivileged(string, ...*exec.Cmd) error { return nil }
