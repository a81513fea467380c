//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// freeze suspends a child, as if it were stuck, and returns when it has stopped.
func freeze(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var state syscall.WaitStatus
	if _, err := syscall.Wait4(p.Pid, &state, syscall.WUNTRACED, nil); err != nil {
		return err
	}
	if !state.Stopped() {
		return fmt.Errorf("the child ended: %v", state)
	}
	return nil
}
