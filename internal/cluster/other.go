//go:build !unix

package cluster

import (
	"errors"
	"syscall"
)

func attributes() (*syscall.SysProcAttr, error) {
	return nil, errors.New("clusters of PostgreSQL are for Unix only")
}

func give(string) error { return nil }
