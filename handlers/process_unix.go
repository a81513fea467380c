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

// lockFD is the descriptor by which a command and everything it starts hold the lock of
// their run. It lies high, because scripts like to use the low ones for themselves.
const lockFD = 99

// process is a command that was started.
type process struct {
	cmd  *exec.Cmd
	hold *hold
	done chan struct{} // closed when it has ended, and its group with it
	err  error         // of cmd.Wait; set before done

	stopping chan struct{} // closed when it was told to end
	hurry    chan struct{} // closed when its group is not waited for any more

	mu    sync.Mutex
	ended bool // its number may belong to somebody else; guarded by mu
}

// start starts a command in a session and a group of its own, which has no terminal.
//
// The goroutine that starts it keeps its thread until it has ended, because on Linux the
// kernel kills the command when the thread that started it dies, and threads of Go do
// die: with a goroutine that was locked to its thread and ends (https://go.dev/issue/27505).
func start(cmd *exec.Cmd, h *hold) (*process, error) {
	p := &process{cmd: cmd, hold: h, done: make(chan struct{}), stopping: make(chan struct{}), hurry: make(chan struct{})}
	cmd.SysProcAttr = attributes()
	cmd.ExtraFiles = make([]*os.File, lockFD-2) // those in between are closed
	cmd.ExtraFiles[lockFD-3] = h.lock
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		if err == nil {
			if err = h.started(cmd.Process.Pid); err != nil {
				close(p.hurry)
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

// finish waits for the end of the program and ends what is left of its group. Where the
// system can tell of the end before the number is free again, the group is killed in
// between, so that it is nobody else's.
func (p *process) finish() {
	seen := awaitExit(p.cmd.Process.Pid)
	if !seen {
		p.err = p.cmd.Wait()
	}
	p.letGroupEnd()
	p.mu.Lock()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // mostly nobody is left
	p.ended = true
	p.mu.Unlock()
	if seen {
		p.err = p.cmd.Wait()
	}
}

// letGroupEnd gives what the program started its part of the grace: a shell dies of a
// SIGTERM at once, and what it runs may have something to clean up.
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
		case <-p.hurry:
			return
		case <-tick.C:
		}
	}
}

// wait returns when the command has ended. If ctx ends before, it tells the group to end,
// by SIGTERM and after the grace by SIGKILL, and reports that it did.
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
		close(p.hurry)
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	return true
}

// stop asks the group to end, and reports whether it had not ended by itself.
func (p *process) stop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || exited(p.cmd.Process.Pid) {
		return false
	}
	close(p.stopping)
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGCONT) // one that is stopped hears no SIGTERM
	return true
}

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// signalOf names the signal that ended a program, "" when none did.
func signalOf(s *os.ProcessState) string {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return ""
}

// neverStarts reports whether an error of exec lies in the program or in the call.
func neverStarts(err error) bool {
	for _, never := range []error{syscall.ENOEXEC, syscall.E2BIG, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL} {
		if errors.Is(err, never) {
			return true
		}
	}
	return false
}
