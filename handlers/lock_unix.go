//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package handlers

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// openLocked opens a file, to read, and takes its lock. It makes a file that is not there,
// for its owner alone. The error of a lock that stays taken matches syscall.EWOULDBLOCK.
func openLocked(ctx context.Context, path string, patience time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	giveUp := time.NewTimer(patience)
	defer giveUp.Stop()
	for {
		err := flock(f)
		if err == nil {
			return f, nil
		}
		select {
		case <-time.After(pollEvery):
		case <-giveUp.C:
			f.Close()
			return nil, err
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		}
	}
}

// locked reports whether anybody holds the lock of a file, by taking it for a moment. No
// command is started in that moment: it would inherit the lock until its program runs.
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
