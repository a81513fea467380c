//go:build amd64 || arm64

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// Types of linux/seccomp.h.
type (
	notification struct {
		id    uint64
		pid   uint32
		flags uint32
		nr    int32
		arch  uint32
		ip    uint64
		args  [6]uint64
	}
	response struct {
		id    uint64
		value int64
		err   int32
		flags uint32
	}
)

const (
	ioctlReceive = 0xc0502100
	ioctlSend    = 0xc0182101
	ioctlFlags   = 0x40082104
	goOn         = 1 // in response.flags: carry the call out
	sameCPU      = 1 // for ioctlFlags: the child and the supervisor, which take turns, wake each other on one CPU
)

// supervisor asks a plan about each call of a child on files in a folder.
type supervisor struct {
	folder   string
	plan     func(n int, c call) fault // n counts from 0
	cmd      *exec.Cmd
	process  process
	listener int
	calls    []call
}

// supervise runs a child in a role until it ends, and asks the plan about each call of some kinds,
// nil for all. Each question takes longer than the call. An error means that it was not supervised.
func supervise(ctx context.Context, folder string, kinds []string, plan func(n int, c call) fault, role string, args ...any) (r ran, err error) {
	s := &supervisor{folder: folder, plan: plan}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return r, err
	}
	mine, its := os.NewFile(uintptr(pair[0]), "supervisor"), os.NewFile(uintptr(pair[1]), "supervised")
	defer mine.Close()
	var out, stderr bytes.Buffer
	s.cmd, err = harness.Command(ctx, nil, "faults-traced", append([]any{strings.Join(kinds, ","), role}, args...)...)
	if err == nil {
		s.cmd.Env = append(s.cmd.Env, "GODEBUG=asyncpreemptoff=1") // a signal would repeat a call
		s.cmd.Stdout, s.cmd.Stderr, s.cmd.ExtraFiles = &out, &stderr, []*os.File{its}
		err = s.cmd.Start()
	}
	_ = its.Close()
	if err != nil {
		return r, err
	}
	if err = s.takeOver(pair[0]); err == nil {
		err = s.serve()
	}
	if err != nil {
		_ = s.cmd.Process.Kill()
	}
	ended := s.cmd.Wait()
	r = ran{calls: s.calls, lines: harness.Lines(out.String()), stderr: strings.TrimSpace(stderr.String()), ended: ended}
	if errors.Is(err, errNotSupervised) {
		err = fmt.Errorf("%w: %s", err, r.stderr)
	}
	return r, err
}

var errNotSupervised = errors.New("the child ended before the supervision of its calls")

// takeOver receives the descriptor for the kernel's questions.
func (s *supervisor) takeOver(socket int) error {
	rights := make([]byte, syscall.CmsgSpace(4))
	for {
		n, size, _, _, err := syscall.Recvmsg(socket, make([]byte, 1), rights, syscall.MSG_CMSG_CLOEXEC)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return errors.Join(errNotSupervised, err)
		}
		messages, err := syscall.ParseSocketControlMessage(rights[:size])
		if err != nil || len(messages) != 1 {
			return errors.Join(errNotSupervised, err)
		}
		fds, err := syscall.ParseUnixRights(&messages[0])
		if err != nil {
			return err
		}
		s.listener = fds[0]
		handle, _, errno := syscall.Syscall(sysOpenProcess, uintptr(s.cmd.Process.Pid), 0, 0)
		if errno != 0 {
			_ = syscall.Close(s.listener)
			return fmt.Errorf("open the child's process: %w", errno)
		}
		s.process.handle = int(handle)
		_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, uintptr(s.listener), ioctlFlags, sameCPU) // only faster, since Linux 6.6
		return nil
	}
}

// serve answers the kernel until the child ends.
func (s *supervisor) serve() error {
	defer func() { _, _ = syscall.Close(s.listener), syscall.Close(s.process.handle) }()
	for {
		more, err := s.wait()
		if !more {
			return err
		}
		var n notification
		if errno := ioctl(s.listener, ioctlReceive, unsafe.Pointer(&n)); errno == syscall.EINTR || errno == syscall.ENOENT {
			continue // interrupted, or killed in the meantime
		} else if errno != 0 {
			return fmt.Errorf("hear of a call: %w", errno)
		}
		r := response{id: n.id, flags: goOn}
		if err := s.decide(&n, &r); err != nil {
			return err
		}
		if errno := ioctl(s.listener, ioctlSend, unsafe.Pointer(&r)); errno != 0 && errno != syscall.ENOENT && errno != syscall.EINPROGRESS {
			return fmt.Errorf("answer a call: %w", errno)
		}
	}
}

// wait waits for a call. More is false once no process has the filter.
func (s *supervisor) wait() (more bool, err error) {
	const pollIn = 1
	for {
		fd := struct {
			fd              int32
			events, revents int16
		}{fd: int32(s.listener), events: pollIn}
		_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fd)), 1, 0, 0, 0, 0)
		switch {
		case errno == syscall.EINTR:
		case errno != 0:
			return false, fmt.Errorf("wait for a call: %w", errno)
		default:
			return fd.revents&pollIn != 0, nil
		}
	}
}

// decide answers one call.
func (s *supervisor) decide(n *notification, r *response) error {
	k, ok := fileKinds[int(n.nr)]
	if !ok {
		return nil
	}
	s.process.pid = int(n.pid)
	name, inside := s.inFolder(k.path(&s.process, n.args[:]))
	if !inside {
		return nil
	}
	c := call{kind: k.name, file: name}
	if n.nr == syscall.SYS_LINKAT || n.nr == syscall.SYS_RENAMEAT {
		c.to, _ = s.inFolder(s.process.text(n.args[3]))
	}
	f := s.plan(len(s.calls), c)
	s.calls = append(s.calls, c)
	switch {
	case f.part:
		written, err := s.process.writePart(int(n.nr), n.args[:])
		if err != nil {
			return err
		}
		r.value, r.flags = int64(written), 0
	case f.errno != 0:
		r.err, r.flags = -int32(f.errno), 0
	}
	if f.kill {
		return s.cmd.Process.Kill()
	}
	return nil
}

// inFolder returns the name of a file in the folder.
func (s *supervisor) inFolder(path string) (name string, inside bool) {
	name, inside = strings.CutPrefix(path, s.folder)
	return strings.TrimPrefix(name, "/"), inside
}

func ioctl(fd int, request uintptr, arg unsafe.Pointer) syscall.Errno {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
	return errno
}
