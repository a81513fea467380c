//go:build !unix

package handlers

import "syscall"

func atEOF(uintptr) bool { return false }

func setsid() *syscall.SysProcAttr { return nil }

func closeOnExec(int) {}

func ownKill(syscall.Signal) {}

func stateOf(*Runner) string { return "" }

func bePatient(*Runner) {}
