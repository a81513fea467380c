package faults

import "syscall"

// Numbers that package syscall lacks or names otherwise.
const (
	sysSeccomp    = 277
	sysReadMemory = 270 // process_vm_readv
	sysStatAt     = syscall.SYS_FSTATAT
	auditArch     = 0xC00000B7
)
