//go:build unix

package main

import (
	"os"
	"syscall"
)

// freeze stops a process without ending it, as one that hangs.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
