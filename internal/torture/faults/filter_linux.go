//go:build amd64 || arm64

package faults

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/gopawl/pawl/internal/torture/harness"
)

func init() { harness.Role("faults-traced", tracedRole) }

// Constants of linux/seccomp.h, linux/prctl.h and linux/filter.h.
const (
	setModeFilter  = 1
	everyThread    = 1<<0 | 1<<4 // and an error, not a number, if a thread has another filter
	newListener    = 1 << 3
	waitKillable   = 1 << 5
	returnAllow    = 0x7fff0000
	returnNotify   = 0x7fc00000
	setNoNewPrivs  = 38
	offsetOfNumber = 0
	offsetOfArch   = 4
	offsetOfArgs   = 16
)

// supervisorFD is the descriptor of a traced child's socket to its supervisor.
const supervisorFD = 3

// tracedRole makes the kernel ask the supervisor about each call of some kinds, sends it the
// descriptor for the answers, and continues as a role. Its arguments are the kinds, the role, and
// the arguments of that. The kernel asks in the order of the calls, over all threads.
func tracedRole(args harness.Args) error {
	var kinds []string
	if args[0] != "" {
		kinds = strings.Split(args[0], ",")
	}
	code := program(kinds)
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("give up privileges: %w", errno)
	}
	listener, err := listen(code, everyThread|newListener|waitKillable)
	if err == syscall.EINVAL {
		listener, err = listen(code, everyThread|newListener) // before Linux 5.19
	}
	if err != nil {
		return fmt.Errorf("have system calls supervised: %w", err)
	}
	if err := syscall.Sendmsg(supervisorFD, []byte{0}, syscall.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("hand over the supervision: %w", err)
	}
	_, _ = syscall.Close(listener), syscall.Close(supervisorFD)
	return harness.Play(args[1], args[2:])
}

func listen(code []syscall.SockFilter, flags uintptr) (int, error) {
	prog := syscall.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	fd, _, errno := syscall.RawSyscall(sysSeccomp, setModeFilter, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// program returns the filter. It asks about the calls of some kinds, nil for all, and lets others pass.
func program(kinds []string) (code []syscall.SockFilter) {
	load := func(offset int) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: uint32(offset)}
	}
	jump := func(how uint16, value uint32, yes, no uint8) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_JMP | how | syscall.BPF_K, Jt: yes, Jf: no, K: value}
	}
	allow := syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: returnAllow}
	notify := syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: returnNotify}
	code = append(code, load(offsetOfArch), jump(syscall.BPF_JEQ, auditArch, 1, 0), allow, load(offsetOfNumber))
	for number, k := range fileKinds {
		if kinds != nil && !slices.Contains(kinds, k.name) {
			continue
		}
		if k.only == nil {
			code = append(code, jump(syscall.BPF_JEQ, uint32(number), 0, 1), notify)
			continue
		}
		met, unmet := notify, allow
		if k.only.negate {
			met, unmet = allow, notify
		}
		code = append(code, jump(syscall.BPF_JEQ, uint32(number), 0, 4),
			load(offsetOfArgs+8*k.only.arg), jump(k.only.jump, k.only.value, 0, 1), met, unmet)
	}
	return append(code, allow)
}
