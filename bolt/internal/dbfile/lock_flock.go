//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package dbfile

import (
	"errors"
	"os"
	"syscall"
)

// CanLock says that a file can be locked as bbolt locks it. Bbolt is given the open file and
// then finds the lock already taken by itself.
const CanLock = true

// tryLock takes the lock of a file without waiting, shared for readers.
func tryLock(f *os.File, shared bool) (ok bool, err error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlock releases the lock of a file behind bbolt's back. When bbolt panics, its map of the
// file stays, and the lock would stay with it.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
