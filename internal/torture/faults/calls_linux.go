//go:build amd64 || arm64

package faults

import "syscall"

// kind is a kind of system call on the queue's files.
type kind struct {
	name string
	path func(p *process, args []uint64) string // the file of a call, "" for none
	only *condition                             // selects some of the calls; nil for all
}

// condition compares the lower half of an argument in the kernel's filter, so calls that it
// lets pass cost nothing.
type condition struct {
	arg    int
	jump   uint16 // a jump constant of package syscall
	value  uint32
	negate bool
}

var (
	byFD      = func(p *process, args []uint64) string { return p.fileOf(args[0]) }
	byName    = func(p *process, args []uint64) string { return p.text(args[1]) }
	ownFD     = &condition{arg: 0, jump: syscall.BPF_JGE, value: 3} // not the story's output
	noFile    = uint32(1<<32 - 1)
	isRandom  = &condition{arg: 2, jump: syscall.BPF_JEQ, value: syscall.MADV_RANDOM} // the flags of bbolt; Go uses others
	hasFile   = &condition{arg: 4, jump: syscall.BPF_JEQ, value: noFile, negate: true}
	fileKinds = map[int]kind{
		syscall.SYS_READ:      {"read", byFD, ownFD},
		syscall.SYS_WRITE:     {"write", byFD, ownFD},
		syscall.SYS_PREAD64:   {"pread64", byFD, nil},
		syscall.SYS_PWRITE64:  {"pwrite64", byFD, nil},
		syscall.SYS_FSYNC:     {"fsync", byFD, nil},
		syscall.SYS_FDATASYNC: {"fdatasync", byFD, nil},
		syscall.SYS_FTRUNCATE: {"ftruncate", byFD, nil},
		syscall.SYS_FSTAT:     {"fstat", byFD, ownFD},
		syscall.SYS_FLOCK:     {"flock", byFD, nil},
		syscall.SYS_LSEEK:     {"lseek", byFD, ownFD},
		syscall.SYS_CLOSE:     {"close", byFD, ownFD},
		syscall.SYS_OPENAT:    {"openat", byName, nil},
		syscall.SYS_UNLINKAT:  {"unlinkat", byName, nil},
		syscall.SYS_LINKAT:    {"linkat", byName, nil},
		syscall.SYS_RENAMEAT:  {"renameat", byName, nil},
		sysStatAt:             {"newfstatat", byName, nil},
		syscall.SYS_MMAP:      {"mmap", func(p *process, args []uint64) string { return p.fileOf(args[4]) }, hasFile},
		syscall.SYS_MUNMAP:    {"munmap", func(p *process, args []uint64) string { return p.mapped(args[0]) }, nil},
		syscall.SYS_MADVISE:   {"madvise", func(p *process, args []uint64) string { return p.mapped(args[0]) }, isRandom},
	}
)
