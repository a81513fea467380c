//go:build unix

package main

import (
	"os"
	"syscall"
)

// freeze suspends a process, as if it were stuck.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
