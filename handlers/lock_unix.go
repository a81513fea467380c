//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package handlers

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// openLocked opens a file for reading and locks it within the timeout. It creates a missing file
// with mode 0600. If the lock stays taken, the error matches syscall.EWOULDBLOCK.
func openLocked(ctx context.Context, path string, timeout time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	expired := time.NewTimer(timeout)
	defer expired.Stop()
	for {
		err := flock(f)
		if err == nil {
			return f, nil
		}
		select {
		case <-time.After(pollEvery):
		case <-expired.C:
			f.Close()
			return nil, err
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		}
	}
}

// locked reports whether a process holds the lock of a file, by taking it briefly. During that,
// ForkLock keeps commands from starting, because they would inherit the lock.
func locked(path string) bool {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(flock(f), syscall.EWOULDBLOCK)
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			return err
		}
	}
}
