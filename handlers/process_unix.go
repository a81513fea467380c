//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package handlers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// lockFD is the descriptor through which a command and its descendants hold the lock of their
// attempt. It is high because scripts use low numbers.
const lockFD = 99

// process is a started command.
type process struct {
	cmd  *exec.Cmd
	hold *hold
	done chan struct{} // closed when it and its group have ended
	err  error         // from cmd.Wait; set before done is closed

	stopping chan struct{} // closed when the group gets SIGTERM
	expired  chan struct{} // closed when the grace is over

	mu    sync.Mutex
	ended bool // its number may have been reused; guarded by mu
}

// start starts a command in its own session and group, without a terminal.
//
// The goroutine that starts it keeps its thread until the command has ended. On Linux the kernel
// kills the command when that thread dies, and Go ends a thread when a goroutine that is locked
// to it ends (https://go.dev/issue/27505).
func start(cmd *exec.Cmd, h *hold) (*process, error) {
	p := &process{cmd: cmd, hold: h, done: make(chan struct{}), stopping: make(chan struct{}), expired: make(chan struct{})}
	cmd.SysProcAttr = attributes()
	cmd.ExtraFiles = make([]*os.File, lockFD-2) // nil entries are closed
	cmd.ExtraFiles[lockFD-3] = h.lock
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		if err == nil {
			if err = h.started(cmd.Process.Pid); err != nil {
				close(p.expired)
				p.signal(syscall.SIGKILL)
			}
		}
		started <- err
		if cmd.Process != nil {
			p.finish()
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

// finish waits for the program to exit and kills the rest of its group. If the system reports
// the exit before the number can be reused, the group is killed before the child is reaped.
func (p *process) finish() {
	seen := awaitExit(p.cmd.Process.Pid)
	if !seen {
		p.err = p.cmd.Wait()
	}
	p.letGroupEnd()
	p.mu.Lock()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.ended = true
	p.mu.Unlock()
	if seen {
		p.err = p.cmd.Wait()
	}
}

// letGroupEnd waits for the rest of a stopped group until the grace is over: a shell dies of
// SIGTERM at once, but its child may have to clean up.
func (p *process) letGroupEnd() {
	select {
	case <-p.stopping:
	default:
		return
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for locked(p.hold.path) {
		select {
		case <-p.expired:
			return
		case <-tick.C:
		}
	}
}

// wait waits for the command to end. If ctx ends first, it sends the group SIGTERM, and SIGKILL
// after the grace, and reports true.
func (p *process) wait(ctx context.Context, grace time.Duration) (stopped bool) {
	select {
	case <-p.done:
		return false
	case <-ctx.Done():
	}
	if !p.stop() {
		<-p.done
		return false
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		close(p.expired)
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	return true
}

// stop asks the group to end. It reports false if the command has already exited.
func (p *process) stop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || exited(p.cmd.Process.Pid) {
		return false
	}
	close(p.stopping)
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGCONT) // a stopped process does not handle SIGTERM
	return true
}

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// signalOf returns the name of the signal that ended a program, or "".
func signalOf(s *os.ProcessState) string {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return ""
}

// neverStarts reports whether err from exec is caused by the program or its arguments.
func neverStarts(err error) bool {
	for _, never := range []error{syscall.ENOEXEC, syscall.E2BIG, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL} {
		if errors.Is(err, never) {
			return true
		}
	}
	return false
}
