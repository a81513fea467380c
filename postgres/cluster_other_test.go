//go:build !unix

package postgres_test

import (
	"errors"
	"syscall"
)

func unprivileged(string) (*syscall.SysProcAttr, error) {
	return nil, errors.New("the tests start PostgreSQL on Unix only")
}
