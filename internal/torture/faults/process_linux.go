//go:build amd64 || arm64

package faults

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

// process is a supervised process. It waits in a call during each inspection.
type process struct {
	pid    int // ID of the waiting thread
	handle int // a pidfd of the process
}

// Numbers from linux/syscalls.h, which are the same on all architectures.
const (
	sysOpenProcess = 434 // pidfd_open
	sysTakeFD      = 438 // pidfd_getfd
)

// fileOf returns the file of a descriptor.
func (p *process) fileOf(fd uint64) string {
	name, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.pid, int32(fd)))
	return name
}

// mapped returns the file whose map starts at an address.
func (p *process) mapped(address uint64) string {
	maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.pid))
	begin := fmt.Sprintf("%08x-", address)
	for line := range strings.Lines(string(maps)) {
		if strings.HasPrefix(line, begin) {
			if at := strings.IndexByte(line, '/'); at >= 0 {
				return strings.TrimSuffix(line[at:], "\n")
			}
		}
	}
	return ""
}

// text reads a C string.
func (p *process) text(address uint64) string {
	var all []byte
	page := uint64(os.Getpagesize())
	for len(all) < 4096 {
		part, err := p.memory(address, page-address%page)
		if err != nil {
			return ""
		}
		if end := bytes.IndexByte(part, 0); end >= 0 {
			return string(append(all, part[:end]...))
		}
		all = append(all, part...)
		address += uint64(len(part))
	}
	return ""
}

// memory copies n bytes out of the process.
func (p *process) memory(address, n uint64) ([]byte, error) {
	type vector struct{ base, length uint64 }
	b := make([]byte, n)
	here := vector{uint64(uintptr(unsafe.Pointer(&b[0]))), n}
	there := vector{address, n}
	got, _, errno := syscall.Syscall6(sysReadMemory, uintptr(p.pid), uintptr(unsafe.Pointer(&here)), 1, uintptr(unsafe.Pointer(&there)), 1, 0)
	if errno != 0 || got == 0 {
		return nil, fmt.Errorf("read memory of the child: %w", errno)
	}
	return b[:got], nil
}

// writePart does the first half of a write for the process, and returns its number of bytes.
func (p *process) writePart(number int, args []uint64) (int, error) {
	half := args[2] / 2
	if half == 0 {
		return 0, nil
	}
	b, err := p.memory(args[1], half)
	if err != nil {
		return 0, err
	}
	fd, _, errno := syscall.Syscall(sysTakeFD, uintptr(p.handle), uintptr(args[0]), 0)
	if errno != 0 {
		return 0, fmt.Errorf("share a file of the child: %w", errno)
	}
	defer func() { _ = syscall.Close(int(fd)) }()
	if number == syscall.SYS_WRITE {
		return syscall.Write(int(fd), b)
	}
	return syscall.Pwrite(int(fd), b, int64(args[3]))
}
