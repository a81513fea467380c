package faults

import "syscall"

// Numbers that package syscall lacks or names otherwise.
const (
	sysSeccomp    = 317
	sysReadMemory = 310 // process_vm_readv
	sysStatAt     = syscall.SYS_NEWFSTATAT
	auditArch     = 0xC000003E
)
