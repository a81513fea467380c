// Package process starts servers for tests. A server ends with the test binary, even when that panics or is killed.
package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"
)

// limit is how long a server may take to start.
const limit = time.Minute

// ErrEnded says that a server ended as soon as it started, as it does when its port is taken.
var ErrEnded = errors.New("the server ended at once")

// Server is a process. Its methods are for one goroutine.
type Server struct {
	PID int

	input io.Closer
	cmd   *exec.Cmd
}

// script runs a server until its input ends, and then kills it by its process ID. Its output ends with the server.
const script = `
log=$1
shift
"$@" 3>&1 >"$log" 2>&1 &
echo $!
exec >/dev/null
cat
kill -9 $! 2>/dev/null
wait
`

// Start starts a server that writes to a log, and waits until it answers, for a minute. Answers is given the process ID,
// so that it does not take somebody else's server for this one.
func Start(log string, answers func(pid int) bool, command ...string) (*Server, error) {
	s := &Server{cmd: exec.Command("/bin/sh", append([]string{"-c", script, "sh", log}, command...)...)}
	input, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.input = input
	in := bufio.NewReader(output)
	if _, err := fmt.Fscanln(in, &s.PID); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%s did not start: %w", command[0], err)
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(ended)
	}()
	for deadline := time.Now().Add(limit); !answers(s.PID); {
		select {
		case <-ended:
			err = ErrEnded
		case <-time.After(5 * time.Millisecond):
			if !time.Now().After(deadline) {
				continue
			}
			err = fmt.Errorf("it does not answer after %v", limit)
		}
		s.Stop()
		text, _ := os.ReadFile(log)
		return nil, fmt.Errorf("start %s: %w: %s", command[0], err, text)
	}
	return s, nil
}

// Stop kills the server. Nothing of it runs afterwards.
func (s *Server) Stop() {
	if p, err := os.FindProcess(s.PID); err == nil && s.PID > 0 {
		_ = p.Kill()
	}
	_ = s.input.Close()
	_ = s.cmd.Wait()
}

// OnPort calls start with a port, or with one that nobody listens on if port is "". It calls start again, for a minute,
// while a server that had the port before, or took it meanwhile, lets it fail with [ErrEnded].
func OnPort[S any](port string, start func(port string) (S, error)) (S, error) {
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		on := port
		if on == "" {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return *new(S), err
			}
			_, on, _ = net.SplitHostPort(l.Addr().String())
			_ = l.Close()
		}
		s, err := start(on)
		if !errors.Is(err, ErrEnded) || time.Now().After(deadline) {
			return s, err
		}
	}
}
