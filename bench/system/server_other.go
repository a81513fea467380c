//go:build !linux

package system

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// Where the kernel does not tie a child to its parent, only Stop ends the servers.
func bind(*exec.Cmd, syscall.Signal) {}

// Where this is root, the program says itself that it refuses.
func unprivileged(string, ...*exec.Cmd) error { return nil }

func processorTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }
